/** The panel while nothing is selected: what the model is, how it ran, its findings, and where its time goes. */

import {agrees, errorOf, layers, report, steps} from "./document.js";
import {bars, findingElement, heading, jump, table} from "./details.js";
import {runtimeElements} from "./runtime.js";
import {counted, html, percent, printable, relative, time} from "./text.js";

const MOST_ROWS = 12;
const MOST_NAME_CHARS = 36;
const MOST_FINDINGS = 200;

const shape = (dims) => (dims === null ? "[...]" : `[${dims.join(",")}]`);

const errors = report.findings.filter((finding) => finding.severity === "error").length;
const warnings = report.findings.length - errors;

/** Return the short facts for the top bar. */
export function chips(select) {
  const {comparison, run, model} = report;
  const chip = (kind, text) => html("button", {class: `chip ${kind}`, type: "button", on: {click: () => select(null)}}, text);
  return [
    html("span", {class: "chip"}, counted(model.layers, "layer")),
    run.state === "done" && html("span", {class: "chip"}, `${time(run.seconds)} per run`),
    run.state === "failed" && chip("error", "does not run"),
    errors > 0 && chip("error", counted(errors, "error")),
    warnings > 0 && chip("warning", counted(warnings, "warning")),
    comparison && chip(comparison.verdict === "agree" ? "good" : "error", comparison.verdict === "agree" ? "agrees" : comparison.verdict === "differ" ? "differs" : comparison.verdict),
  ];
}

function ports(title, tensors) {
  if (!tensors.length) return null;
  const row = (tensor) => html("tr", {}, html("td", {class: "mono"}, printable(tensor.name)), html("td", {class: "mono muted"}, `${tensor.type ?? ""} ${shape(tensor.shape)}`));
  return [heading(title), html("table", {}, tensors.map(row))];
}

/** Return the end of a name, which says more than its beginning. */
const end = (name) => (name.length <= MOST_NAME_CHARS ? printable(name) : `…${printable(name.slice(1 - MOST_NAME_CHARS))}`);

/** Return the layers that take longest. In a step of several layers, their times are estimates. */
function slowestLayers(select) {
  if (!steps.some((step) => step.fractions)) return null;
  const all = steps.reduce((sum, step) => sum + step.seconds * step.calls, 0) || 1;
  const rows = layers
    .filter((layer) => layer.seconds && (layer.step.layers.length === 1 || layer.step.fractions))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, MOST_ROWS)
    .map((layer) => ({
      label: jump(layer.number, select, [`${printable(layer.type)} `, html("span", {class: "name"}, end(layer.name))]), size: layer.seconds,
      text: `${layer.step.fractions ? "≈ " : ""}${time(layer.seconds)}  ${percent(layer.seconds / all)}`, colour: "var(--heat)",
    }));
  return [heading("Slowest layers"), bars(rows), html("p", {class: "muted"}, "≈ is an estimate: the time of a step is divided among its layers by their FLOPs and bytes.")];
}

function slowest(select) {
  if (!steps.length) return null;
  const all = steps.reduce((sum, step) => sum + step.seconds * step.calls, 0) || 1;
  const rows = [...steps]
    .filter((step) => step.layers.length)
    .sort((a, b) => b.seconds * b.calls - a.seconds * a.calls)
    .slice(0, MOST_ROWS)
    .map((step) => {
      const last = layers[step.layers[step.layers.length - 1]];
      const size = step.seconds * step.calls;
      const title = step.layers.length === 1 ? last.type : `${step.layers.length} layers, ${layers[step.layers[0]].type} … ${last.type}`;
      const name = html("span", {class: "name"}, end(last.name));
      return {label: jump(last.number, select, [`${printable(title)} `, name]), size, text: `${time(size)}  ${percent(size / all)}`, colour: "var(--heat)"};
    });
  return [heading("Slowest steps"), bars(rows)];
}

function comparisonElements(select) {
  const {comparison} = report;
  if (!comparison) return null;
  const good = comparison.verdict === "agree";
  const first = comparison.first === null ? null : layers[comparison.first];
  const worst = layers
    .map((layer) => ({layer, error: errorOf(layer)}))
    .filter((one) => one.error !== null && one.error > 0)
    .sort((a, b) => b.error - a.error)
    .slice(0, MOST_ROWS);
  const text = (error) => (Number.isFinite(error) ? error.toExponential(1) : "not defined");
  return [
    heading("Comparison"),
    table([
      ["verdict", html("span", {class: `verdict ${good ? "good" : "bad"}`}, good ? "agree" : comparison.verdict)],
      ["reference", html("span", {class: "mono"}, printable(`${comparison.reference[0]} (${comparison.reference[1]})`))],
      ["failure", comparison.failure && printable(comparison.failure)],
      ["first divergence", first && jump(first.number, select, `${printable(first.type)} ${printable(first.name)}`)],
      ["differs in", comparison.differences.length ? printable(comparison.differences.join("; ")) : null],
    ]),
    worst.length > 0 && [
      heading("Largest errors"),
      bars(worst.map(({layer, error}) => ({
        label: jump(layer.number, select, `${printable(layer.type)} ${printable(layer.name)}`), size: Math.max(0, Math.log10(Math.min(error, 1)) + 8), text: text(error),
        colour: agrees(layer) ? "var(--c0)" : "var(--bad)",
      }))),
    ],
  ];
}

const identity = (finding) => [finding.code, finding.line, finding.message].join(" ");

function expectedElements() {
  const {expected} = report;
  if (!expected || !expected.outputs.length) return null;
  const text = (output) => `${relative(output.error ?? Infinity)}; ${relative(output.allowed ?? Infinity)} of an element is explained`;
  return [heading(`Errors to expect in ${expected.precision}`), table(expected.outputs.map((output) => [printable(output.name), text(output)]))];
}

function runElements() {
  const {run} = report;
  if (run.state === "failed") {
    const known = new Set(report.findings.map(identity));
    const others = run.why.filter((why) => !known.has(identity(why)));
    const text = others.length ? "The model does not run." : "The model does not run: see the findings.";
    return [heading("Run"), html("p", {class: "verdict bad"}, text), others.map((why) => findingElement({...why, layer: null}, () => {}))];
  }
  if (run.state !== "done") return [heading("Run"), html("p", {class: "muted"}, "The model was not run.")];
  const row = (input) => [printable(input.name), html("span", {}, html("span", {class: "mono"}, `${input.type} ${input.shape}`), ` ${printable(input.from)}`)];
  return [heading("Run"), table([["time", `${time(run.seconds)}, the median of ${counted(run.runs, "run")}`], ...run.inputs.map(row)])];
}

/** Return the contents of the panel. */
export function overview(select) {
  const {model} = report;
  const most = model.operations.slice(0, MOST_ROWS).map((one) => ({label: printable(one.type), size: one.count, text: one.count.toLocaleString("en")}));
  return [
    html("h2", {}, printable(model.name || "model")),
    html("p", {class: "sub"}, printable(report.file)),
    table([
      ["IR version", model.ir_version === null ? null : String(model.ir_version)],
      ["parameters", `${model.parameters.toLocaleString("en")} in ${model.weight_bytes.toLocaleString("en")} bytes`],
      ["report", `irrun ${report.irrun}`],
    ]),
    report.findings.length > 0 && [
      heading(`Findings (${report.findings.length})`),
      report.findings.slice(0, MOST_FINDINGS).map((finding) => findingElement(finding, select)),
      report.findings.length > MOST_FINDINGS && html("p", {class: "muted"}, `and ${report.findings.length - MOST_FINDINGS} more; irrun check lists them`),
    ],
    comparisonElements(select),
    expectedElements(),
    runtimeElements(select),
    ports("Inputs", model.inputs),
    ports("Outputs", model.outputs),
    runElements(),
    slowest(select),
    slowestLayers(select),
    heading("Operations"),
    bars(most),
    model.operations.length > MOST_ROWS && html("p", {class: "muted"}, `and ${model.operations.length - MOST_ROWS} more`),
  ];
}
