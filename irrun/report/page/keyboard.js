/** The keyboard: what each key does, and the nodes next to a node. */

import {html} from "./text.js";

export const KEYS = [
  ["/", "search"],
  ["↑ ↓ ← →", "move to a producer, a consumer or a neighbour"],
  ["Enter", "open a group, or close the group around a layer"],
  ["Esc", "back to the overview"],
  ["n  p", "next and previous finding"],
  ["+  −  0", "zoom in, zoom out, show all"],
  ["c", "show or hide constants"],
  ["r", "back to the first view"],
  ["t", "light or dark"],
  ["?", "this help"],
];

/** Return the contents of the help. */
export const help = () => [
  html("h2", {}, "Keyboard"),
  html("table", {}, KEYS.map(([key, text]) => html("tr", {}, html("td", {}, html("kbd", {}, key)), html("td", {}, text)))),
  html("p", {class: "muted"}, "Drag to move, scroll to zoom, click a node for its details, double-click a group to open it."),
];

/** Return the number of the node that an arrow key leads to, or null. */
export function neighbour(layout, number, key) {
  const places = new Map(layout.nodes.map((node) => [node.number, node]));
  const own = places.get(number);
  if (!own) return layout.nodes.length ? [...layout.nodes].sort((a, b) => a.y - b.y || a.x - b.x)[0].number : null;
  const along = {ArrowDown: ["from", "to"], ArrowUp: ["to", "from"]}[key];
  let candidates;
  if (along) candidates = layout.edges.filter((edge) => edge[along[0]] === number && edge[along[1]] !== number).map((edge) => places.get(edge[along[1]]));
  else {
    const sign = key === "ArrowRight" ? 1 : -1;
    candidates = layout.nodes.filter((node) => (node.x - own.x) * sign > 1 && Math.abs(node.y - own.y) < (own.height + node.height) * 0.75);
  }
  const distance = (node) => Math.abs(node.x - own.x) + (along ? 0 : 3 * Math.abs(node.y - own.y));
  return candidates.filter(Boolean).sort((a, b) => distance(a) - distance(b))[0]?.number ?? null;
}
