/** Which layers and groups are visible: the members of all open groups, and the links between them. */

import {ancestors, groupOf, isGroup, layers, links, parents, report, ROOT, shapeOf} from "./document.js";

/** The most nodes that are drawn at once, so that a layout takes less than a second. */
export const MOST_NODES = 400;

export const view = {
  open: new Set(report.open),
  constants: false,
  /** Constants that are shown although constants are not: those that were selected. */
  revealed: new Set(),
};

const isShown = (number) => isGroup(number) || !layers[number].hidden || view.constants || view.revealed.has(number);

/** Return the visible graph: nodes, open groups as clusters, and edges with what they carry. */
export function visibleGraph() {
  /** For each group: null if it is open and all around it are, else the closed group that stands for it. */
  const standIn = new Map();
  const standInOf = (number) => {
    if (!standIn.has(number)) {
      const parent = parents[number];
      const outer = parent < 0 ? null : standInOf(parent);
      standIn.set(number, outer ?? (view.open.has(number) ? null : number));
    }
    return standIn.get(number);
  };
  const representative = (number) => standInOf(parents[number]) ?? number;
  const nodes = [];
  const clusters = [];
  const waiting = [ROOT];
  while (waiting.length) {
    for (const member of groupOf(waiting.pop()).members) {
      if (isGroup(member) && view.open.has(member)) {
        clusters.push(member);
        waiting.push(member);
      } else if (isShown(member)) nodes.push(member);
    }
  }
  const edges = new Map();
  for (const link of links) {
    if (!isShown(link.from) || !isShown(link.to)) continue;
    const from = representative(link.from);
    const to = representative(link.to);
    if (from === to && isGroup(from)) continue;
    const key = `${from} ${to}`;
    const known = edges.get(key);
    if (known) known.links.push(link);
    else edges.set(key, {from, to, links: [link]});
  }
  return {nodes, clusters, edges: [...edges.values()]};
}

/** Return the shape that an edge carries, or an empty text for an edge that stands for several. */
export function carried(edge) {
  if (edge.links.length > 1) return "";
  const {from, to} = edge.links[0];
  const input = layers[to].inputs.find((one) => one.producer === from);
  const output = layers[from].outputs[input ? input.position : 0];
  return output ? shapeOf(output) : "";
}

/** Return how many nodes would be visible if these groups were open. */
export function countVisible(open) {
  let count = 0;
  const waiting = [ROOT];
  while (waiting.length) {
    for (const member of groupOf(waiting.pop()).members) {
      if (isGroup(member) && open.has(member)) waiting.push(member);
      else if (isShown(member)) count += 1;
    }
  }
  return count;
}

/** Open groups. Others are closed again if too many nodes would be visible. */
export function openGroups(numbers) {
  const wanted = new Set([...view.open, ...numbers]);
  view.open = countVisible(wanted) <= MOST_NODES ? wanted : new Set([ROOT, ...numbers.flatMap((number) => [number, ...ancestors(number)])]);
}

/** Close a group and all groups in it. */
export function closeGroup(number) {
  const waiting = [number];
  while (waiting.length) {
    const next = waiting.pop();
    view.open.delete(next);
    waiting.push(...groupOf(next).members.filter((member) => isGroup(member) && view.open.has(member)));
  }
}
