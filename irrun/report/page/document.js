/** The document of the report, as objects: layers, outputs, groups and links. */

/** Return the rows of a table `{columns, rows}` as objects. */
export function objects(table) {
  return table.rows.map((row) => Object.fromEntries(table.columns.map((column, at) => [column, row[at]])));
}

export const report = JSON.parse(document.getElementById("document").textContent);
export const layers = objects(report.layers);
export const outputs = objects(report.outputs);
export const groups = objects(report.groups);
export const steps = objects(report.steps);
export const links = objects(report.links);
/** The nodes of the graph that an engine runs, if the report has one. */
export const runNodes = report.runtime ? objects(report.runtime.nodes) : [];
/** The number of the group that is the model itself. Numbers below it are those of layers. */
export const ROOT = layers.length;
export const parents = report.parents;

layers.forEach((layer, number) => Object.assign(layer, {number, outputs: [], readers: [], findings: [], step: null, seconds: 0, runs: null}));
runNodes.forEach((node) => (node.layers = []));
outputs.forEach((output) => layers[output.layer].outputs.push(output));
objects(report.statistics).forEach((row) => (outputs[row.output].statistics = row));
if (report.comparison) objects(report.comparison.errors).forEach((row) => (outputs[row.output].error = row));
if (report.expected) objects(report.expected.errors).forEach((row) => (outputs[row.output].expected = row.error ?? Infinity));
if (report.runtime)
  objects(report.runtime.layers).forEach((row) => {
    layers[row.layer].runs = {state: row.state, nodes: row.nodes.map((number) => runNodes[number])};
    layers[row.layer].runs.nodes.forEach((node) => node.layers.push(row.layer));
  });
for (const layer of layers) {
  layer.inputs = layer.inputs.map(([name, producer, position, declared]) => ({name, producer, position, declared}));
  layer.inputs.forEach((input, at) => {
    if (input.producer >= 0) layers[input.producer].readers.push({layer: layer.number, input: at, position: input.position});
  });
}
for (const step of steps) {
  const last = step.layers.length - 1;
  step.layers.forEach((number, at) => {
    layers[number].step = step;
    layers[number].seconds += step.seconds * step.calls * (step.fractions?.[at] ?? Number(at === last));
  });
}
report.findings.forEach((finding) => finding.layer !== null && layers[finding.layer].findings.push(finding));
groups.forEach((group, at) => Object.assign(group, {number: ROOT + at, members: []}));
parents.forEach((parent, number) => parent >= 0 && groups[parent - ROOT].members.push(number));

export const isGroup = (number) => number >= ROOT;
export const groupOf = (number) => groups[number - ROOT];

/** Return the numbers of the groups that hold a layer or group, the innermost first. */
export function ancestors(number) {
  const found = [];
  for (let parent = parents[number]; parent >= 0; parent = parents[parent]) found.push(parent);
  return found;
}

/** Yield the layers in a group, or the layer itself. */
export function* layersIn(number) {
  const waiting = [number];
  while (waiting.length) {
    const next = waiting.pop();
    if (isGroup(next)) for (const member of groupOf(next).members) waiting.push(member);
    else yield layers[next];
  }
}

/** The greatest relative error of a layer's outputs: Infinity if it is not defined, null if none was compared. */
export function errorOf(layer) {
  const errors = layer.outputs.flatMap((output) => (output.error ? [output.error.error ?? Infinity] : []));
  return errors.length ? Math.max(...errors) : null;
}

/** Whether all outputs of a layer that were compared are within their tolerances. */
export const agrees = (layer) => layer.outputs.every((output) => !output.error || output.error.agrees);

/** The element type of a layer's first output: that of the run, else the inferred one, else the declared one. */
export function typeOf(layer) {
  const [first] = layer.outputs;
  return first ? first.statistics?.type || first.inferred?.[0] || first.declared[0] || "" : "";
}

/** The shape of an output as text: that of the run, else the inferred one, else the declared one. */
export const shapeOf = (output) => output.statistics?.shape || output.inferred?.[1] || output.declared[1] || "";

const totals = new Map();

/** What the layers in a group, or a layer itself, amount to: their number, findings, time and greatest error. */
export function total(number) {
  if (!totals.has(number)) {
    const sum = {layers: 0, errors: 0, warnings: 0, seconds: 0, error: null, agrees: true};
    for (const layer of layersIn(number)) {
      sum.layers += layer.hidden ? 0 : 1;
      for (const finding of layer.findings) sum[finding.severity === "error" ? "errors" : "warnings"] += 1;
      sum.seconds += layer.seconds;
      const error = errorOf(layer);
      if (error !== null) sum.error = Math.max(sum.error ?? 0, error);
      sum.agrees &&= agrees(layer);
    }
    totals.set(number, sum);
  }
  return totals.get(number);
}
