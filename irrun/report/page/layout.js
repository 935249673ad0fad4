/** Place nodes, clusters and edges with the library dagre, in layers from top to bottom. */

import {groupOf, isGroup, layers, parents, ROOT, total} from "./document.js";
import {printable, shortened, width} from "./text.js";
import {carried} from "./visible.js";

const MOST_TYPE = 30;
const MOST_NAME = 34;

/** Return the texts of a node: `title`, `subtitle`, and for a group `count`. */
export function textsOf(number) {
  if (isGroup(number)) {
    const group = groupOf(number);
    return {
      title: printable(shortened(group.label || "model", MOST_NAME)),
      subtitle: printable(shortened(group.summary, MOST_NAME)),
      count: total(number).layers.toLocaleString("en"),
    };
  }
  const layer = layers[number];
  const name = layer.label.split(/[/.](?=[^/.]*[^/.\d])/).pop() || layer.label;
  return {title: printable(shortened(layer.type, MOST_TYPE)), subtitle: printable(shortened(name, MOST_NAME)), count: ""};
}

function sizeOf(number) {
  const {title, subtitle, count} = textsOf(number);
  const top = width(title, "600 12px") + (count ? width(count, "600 11px") + 18 : 0);
  return {width: Math.max(86, Math.max(top, width(subtitle, "11px")) + 28), height: 42};
}

/** Return the size of the label of an edge, in a fixed-width font. */
export const labelSize = (label) => ({width: label.length * 6.7 + 8, height: 16});

/**
 * Return the layout of a visible graph: nodes and clusters with `x`, `y` (of their centres), `width` and `height`, and
 * edges with `points` and, where they carry one shape, a `label` at `x`, `y`.
 */
export function laidOut(visible) {
  const graph = new dagre.graphlib.Graph({compound: true, multigraph: false});
  graph.setGraph({rankdir: "TB", nodesep: 26, ranksep: 34, edgesep: 14, marginx: 24, marginy: 24});
  for (const number of visible.clusters) graph.setNode(String(number), {});
  for (const number of visible.nodes) graph.setNode(String(number), sizeOf(number));
  for (const number of [...visible.clusters, ...visible.nodes]) {
    if (parents[number] !== ROOT) graph.setParent(String(number), String(parents[number]));
  }
  const edges = visible.edges.map((edge) => {
    const label = edge.from === edge.to ? "" : carried(edge);
    graph.setEdge(String(edge.from), String(edge.to), label ? {...labelSize(label), labelpos: "c"} : {});
    return {...edge, label};
  });
  dagre.layout(graph);
  const placed = (number) => {
    const {x, y, width, height} = graph.node(String(number));
    return {number, x, y, width, height};
  };
  return {
    nodes: visible.nodes.map(placed),
    clusters: visible.clusters.map(placed),
    edges: edges.map((edge) => {
      const {points, x, y} = graph.edge(String(edge.from), String(edge.to));
      return {...edge, points, x, y};
    }),
  };
}
