/** The panel for a selected layer or group. */

import {agrees, groupOf, isGroup, layers, report, steps, total} from "./document.js";
import {histogram} from "./histogram.js";
import {counted, figure, html, percent, printable, relative, time} from "./text.js";

const MOST_INPUTS = 100;
const MOST_READERS = 12;
const MOST_UNFOLDED = 3;
const MOST_MEMBERS = 60;

export const heading = (text) => html("h3", {}, text);
const pair = ([type, shape]) => [type, shape].filter(Boolean).join(" ");

/** Return a table of names and contents. Rows with the content null are left out. */
export function table(rows) {
  const kept = rows.filter(([, content]) => content !== null && content !== undefined && content !== "");
  return html("table", {}, kept.map(([name, content]) => html("tr", {}, html("th", {scope: "row"}, name), html("td", {class: "figure"}, content))));
}

/** Return a table of bars: rows with a label, a size, a text and a colour. */
export function bars(rows) {
  const most = Math.max(...rows.map((row) => row.size)) || 1;
  return html(
    "table",
    {class: "bars"},
    rows.map((row) => html("tr", {}, html("td", {}, row.label, html("span", {class: "bar", style: {width: `${(100 * row.size) / most}%`, background: row.colour ?? "var(--c0)"}})), html("td", {class: "right"}, row.text))),
  );
}

/** Return a button that selects a layer or group. */
export function jump(number, select, text) {
  return html("button", {class: "jump mono", type: "button", on: {click: () => select(number)}}, text);
}

const named = (layer) => printable(layer.name || layer.type);

/** Return a finding. A click selects its layer. */
export function findingElement(finding, select) {
  return html(
    "button",
    {class: `finding ${finding.severity}`, type: "button", disabled: finding.layer === null, on: {click: () => finding.layer !== null && select(finding.layer)}},
    html("b", {}, `${finding.code} ${finding.name}`), finding.line === null ? "" : html("span", {class: "muted"}, `  line ${finding.line}`),
    html("div", {}, printable(finding.message)),
    finding.notes.map((note) => html("span", {class: "note"}, printable(note))),
    finding.help && html("span", {class: "help"}, `help: ${printable(finding.help)}`),
  );
}

function inputRow(input, select) {
  if (input.producer < 0) return [printable(input.name), html("span", {class: "muted"}, "no edge feeds it")];
  const producer = layers[input.producer];
  const output = producer.outputs[input.position];
  const inferred = output?.inferred ? pair(output.inferred) : "";
  const declared = pair(input.declared);
  const contradicts = declared && inferred && declared !== inferred;
  return [
    printable(input.name),
    [
      jump(input.producer, select, `${printable(producer.type)} ${named(producer)}`),
      html("div", {class: "mono"}, inferred || declared, contradicts ? html("span", {class: "muted"}, `  declared ${declared}`) : null),
    ],
  ];
}

function errorTable(error) {
  if (error.problem) return html("p", {class: "verdict bad"}, printable(error.problem));
  return table([
    ["verdict", html("span", {class: `verdict ${error.agrees ? "good" : "bad"}`}, error.agrees ? "within tolerance" : `${percent(error.outside)} outside`)],
    ["error", figure(error.error)],
    ["max abs", figure(error.max_abs)],
    ["max rel", figure(error.max_rel)],
    ["cosine", figure(error.cosine)],
    ["SNR", error.snr === null ? null : `${figure(Number(error.snr.toFixed(2)))} dB`],
    ["worst at", error.worst && html("span", {class: "mono"}, `[${error.worst.join(",")}]`)],
    ["tolerance", `rtol ${error.rtol}, atol ${error.atol}`],
  ]);
}

function statisticsTable(row) {
  const share = (count) => (count ? `${count.toLocaleString("en")} (${percent(count / row.size)})` : "0");
  const counts = row.type === "string" ? [] : [["zeros", share(row.zeros)], ["NaN", row.nan ? share(row.nan) : null], ["Inf", row.inf ? share(row.inf) : null]];
  return table([
    ["type", html("span", {class: "mono"}, `${row.type} ${row.shape}`)],
    ["elements", row.size.toLocaleString("en")],
    ["min", row.min === null ? null : figure(row.min)],
    ["mean", row.mean === null ? null : figure(row.mean)],
    ["max", row.max === null ? null : figure(row.max)],
    ["std", row.std === null ? null : figure(row.std)],
    ...counts,
    ["computed", row.calls > 1 ? `${row.calls} times; the figures are of the last` : null],
  ]);
}

/** Return a formula with where its numbers come from. Rows that explain a number of the row above are indented. */
function formulaRow([text, where]) {
  return html("div", {class: /^\s/.test(text) ? "inner" : ""}, html("span", {}, text.trim()), where && html("span", {class: "where"}, where));
}

function outputElements(layer, output, select) {
  const declared = pair(output.declared);
  const inferred = output.inferred ? pair(output.inferred) : "";
  const readers = layer.readers.filter((reader) => reader.position === output.position);
  const rows = report.formulas[output.formula];
  return html(
    "div",
    {class: "card-box"},
    table([
      ["port", String(output.port)],
      ["declared", html("span", {class: "mono"}, declared || "nothing")],
      ["inferred", html("span", {class: "mono"}, inferred || "unknown")],
      ["tensor", output.names.length ? html("span", {class: "mono"}, printable(output.names.join(", "))) : null],
      ["read by", readers.length ? readers.slice(0, MOST_READERS).map((reader) => html("div", {}, jump(reader.layer, select, `${printable(layers[reader.layer].type)} ${named(layers[reader.layer])}`))) : "nothing"],
      ["", readers.length > MOST_READERS ? html("span", {class: "muted"}, `and ${readers.length - MOST_READERS} more`) : null],
    ]),
    output.expected !== undefined && html("p", {class: "muted"}, `expect ${relative(output.expected)} in ${report.expected.precision}`),
    rows.length > 0 && html("div", {class: "formula", "aria-label": "Where the dims come from"}, rows.map(formulaRow)),
    output.statistics && [heading("Values"), statisticsTable(output.statistics), histogram(output.statistics)],
    output.error && [heading("Error"), errorTable(output.error)],
  );
}

/** Return texts, a line each; many are folded behind how many they are. */
function folded(texts) {
  const lines = texts.map((text) => html("div", {}, text));
  return texts.length <= MOST_UNFOLDED ? lines : html("details", {}, html("summary", {}, counted(texts.length, "layer")), lines);
}

function timeRows(layer) {
  const {step} = layer;
  if (!step) return report.run.state === "done" && !["Parameter", "Result", "Const"].includes(layer.type) ? [["time", "none: folded, or part of another step"]] : [];
  const all = steps.reduce((sum, one) => sum + one.seconds * one.calls, 0) || 1;
  const others = step.layers.filter((number) => number !== layer.number);
  return [
    ["time", others.length && step.fractions ? `≈ ${time(layer.seconds)}, ${percent(layer.seconds / all)} of a run, estimated by FLOPs and bytes` : null],
    [others.length ? "step" : "time", `${time(step.seconds)}${step.calls > 1 ? ` × ${figure(step.calls)}` : ""}, ${percent((step.seconds * step.calls) / all)} of a run`],
    ["computed as", step.algorithm ? printable(step.algorithm) : null],
    ["together with", others.length ? folded(others.map((number) => `${printable(layers[number].type)} ${named(layers[number])}`)) : null],
  ];
}

/** Return where a layer runs in the graph of an engine. */
function nodeElements(layer, select) {
  if (!layer.runs) return null;
  const {state, nodes} = layer.runs;
  const together = [...new Set(nodes.flatMap((node) => node.layers))].filter((number) => number !== layer.number);
  const texts = (key) => [...new Set(nodes.map((node) => node[key]))].filter(Boolean).join(", ");
  const sum = (key) => nodes.reduce((total, node) => total + node[key], 0);
  return [
    heading(`In ${report.runtime.engine}`),
    table([
      ["runs in", nodes.length ? nodes.map((node) => html("div", {class: "mono"}, printable(`${node.type} ${node.name}`))) : `no node: ${state}`],
      ["node precision", texts("precision")],
      ["primitive", texts("primitive")],
      ["fused with", together.length ? together.slice(0, MOST_READERS).map((number) => html("div", {}, jump(number, select, `${printable(layers[number].type)} ${named(layers[number])}`))) : null],
      ["", together.length > MOST_READERS ? html("span", {class: "muted"}, `and ${together.length - MOST_READERS} more`) : null],
      ["node time", nodes.length ? `${time(sum("microseconds") / 1e6)}, ${percent(sum("share"))} of a run` : null],
    ]),
  ];
}

function layerElements(layer, select) {
  return [
    html("h2", {}, printable(layer.type)),
    html("p", {class: "sub"}, named(layer)),
    layer.findings.map((finding) => findingElement(finding, select)),
    layer.refused && html("p", {class: "verdict bad"}, `cannot be inferred: ${printable(layer.refused)}; the declared shapes are shown`),
    table([
      ["operation", `${printable(layer.type)} ${layer.version ? `(${printable(layer.version)})` : ""}`],
      ["line", `${layer.line}`],
      ...timeRows(layer),
    ]),
    nodeElements(layer, select),
    layer.attributes.length > 0 && [heading("Attributes"), table(layer.attributes.map(([name, text]) => [printable(name), html("span", {class: "mono"}, printable(text) || "(empty)")]))],
    layer.inputs.length > 0 && [
      heading("Inputs"),
      table(layer.inputs.slice(0, MOST_INPUTS).map((input) => inputRow(input, select))),
      layer.inputs.length > MOST_INPUTS && html("p", {class: "muted"}, `and ${layer.inputs.length - MOST_INPUTS} more`),
    ],
    layer.outputs.length > 0 && [heading(layer.outputs.length > 1 ? "Outputs" : "Output"), layer.outputs.map((output) => outputElements(layer, output, select))],
    report.run.state !== "done" && layer.outputs.length > 0 && html("p", {class: "muted"}, "No values: the model was not run."),
  ];
}

function groupElements(group, select, toggle) {
  const sum = total(group.number);
  const members = group.members.filter((member) => isGroup(member) || !layers[member].hidden);
  const label = (member) => (isGroup(member) ? printable(groupOf(member).label) : `${printable(layers[member].type)} ${named(layers[member])}`);
  return [
    html("h2", {}, printable(group.label || "model")),
    html("p", {class: "sub"}, printable(group.summary)),
    table([
      ["layers", sum.layers.toLocaleString("en")],
      ["time", sum.seconds ? `${time(sum.seconds)} per run` : null],
      ["error", sum.error === null ? null : figure(Number.isFinite(sum.error) ? sum.error : null)],
      ["findings", sum.errors + sum.warnings ? `${counted(sum.errors, "error")}, ${counted(sum.warnings, "warning")}` : null],
      ["", html("button", {class: "jump", type: "button", on: {click: () => toggle(group.number)}}, "open or collapse (Enter)")],
    ]),
    heading("Members"),
    members.slice(0, MOST_MEMBERS).map((member) => html("div", {}, jump(member, select, label(member)))),
    members.length > MOST_MEMBERS && html("p", {class: "muted"}, `and ${members.length - MOST_MEMBERS} more`),
  ];
}

/** Return the contents of the panel for a layer or group. */
export function details(number, {select, toggle}) {
  return [
    html("button", {class: "jump", type: "button", on: {click: () => select(null)}}, "← overview"),
    isGroup(number) ? groupElements(groupOf(number), select, toggle) : layerElements(layers[number], select),
    !isGroup(number) && !agrees(layers[number]) && report.comparison?.first === number && html("p", {class: "verdict bad"}, "the first divergence"),
  ];
}
