/** The part of the overview about the graph that an engine runs: a summary, inserted nodes, patterns that are not fused. */

import {bars, heading, jump, table} from "./details.js";
import {layers, objects, report, runNodes} from "./document.js";
import {counted, html, percent, printable, time} from "./text.js";

const MOST_NODES_LISTED = 12;
const MOST_FUSIONS = 40;

const listed = (counts) => Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ");

function insertedElements() {
  const inserted = objects(report.runtime.inserted).filter((row) => !row.before_run);
  if (!inserted.length) return null;
  inserted.sort((a, b) => runNodes[b.node].microseconds - runNodes[a.node].microseconds);
  const row = ({node, from, to, changes}) => [
    printable(runNodes[node].type),
    [html("div", {class: "mono"}, printable(changes)), html("div", {class: "muted"}, printable(`${from} → ${to}, ${percent(runNodes[node].share)}`))],
  ];
  return [
    heading("Inserted nodes"),
    table(inserted.slice(0, MOST_NODES_LISTED).map(row)),
    inserted.length > MOST_NODES_LISTED && html("p", {class: "muted"}, `and ${inserted.length - MOST_NODES_LISTED} more`),
  ];
}

function fusionElements(select) {
  const left = objects(report.runtime.fusions).filter((fusion) => !fusion.fused);
  if (!left.length) return null;
  return [
    heading("Patterns not fused"),
    left.slice(0, MOST_FUSIONS).map(({pattern, layer, condition, found}) =>
      html(
        "div",
        {class: "card-box"},
        layer === null ? printable(pattern) : jump(layer, select, printable(`${pattern} ${layers[layer].name}`)),
        condition
          ? [html("div", {}, printable(`needed: ${condition}`)), html("div", {class: "muted"}, printable(`but ${found}`))]
          : html("div", {class: "muted"}, "the file meets every condition that irrun knows"),
      ),
    ),
    left.length > MOST_FUSIONS && html("p", {class: "muted"}, `and ${left.length - MOST_FUSIONS} more`),
  ];
}

/** Return the elements about the graph, or null if the report has none. */
export function runtimeElements(select) {
  const {runtime} = report;
  if (!runtime) return null;
  const {summary} = runtime;
  const costly = [...runNodes].filter((node) => node.microseconds).sort((a, b) => b.microseconds - a.microseconds).slice(0, MOST_NODES_LISTED);
  const label = (node) => {
    const text = printable(`${node.type} ${node.name}`);
    return node.layers.length ? jump(node.layers[node.layers.length - 1], select, text) : text;
  };
  return [
    heading("What the engine runs"),
    table([
      ["engine", printable(runtime.engine)],
      ["nodes", `${counted(summary.layers, "layer")} run as ${counted(summary.nodes, "node")}, ${time(runtime.microseconds / 1e6)}, the median of ${counted(runtime.runs, "run")}`],
      ["layers", `${counted(summary.constants, "constant")}, ${summary.ports} inputs and outputs, ${listed(summary.states)}`],
      ["computed in", `${counted(summary.computed, "layer")}: ${listed(summary.precisions)}`],
      ["in a run", `${counted(summary.of_layers, "node")} of layers; inserted: ${listed(summary.inserted) || "none"}`],
    ]),
    costly.length > 0 && [
      heading("Costliest nodes"),
      bars(costly.map((node) => ({label: label(node), size: node.microseconds, text: `${time(node.microseconds / 1e6)}  ${percent(node.share)}`, colour: "var(--heat)"}))),
    ],
    insertedElements(),
    fusionElements(select),
  ];
}
