/** Draw a layout as SVG. */

import {coloursOf} from "./colours.js";
import {groupOf, isGroup, layers, shapeOf, total} from "./document.js";
import {labelSize, textsOf} from "./layout.js";
import {counted, printable, shortened, svg, width} from "./text.js";

/** Return the path of a smooth curve along points: a uniform B-spline that begins and ends in the first and last. */
function smooth(points) {
  const [first] = points;
  const last = points[points.length - 1];
  const at = (p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`;
  if (points.length < 3) return `M${at(first)}L${at(last)}`;
  const between = (a, b, t) => ({x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t});
  let path = `M${at(first)}L${at(between(first, points[1], 1 / 6))}`;
  const all = [...points, last];
  for (let i = 1; i < points.length; i += 1) {
    const [a, b, c] = [all[i - 1], all[i], all[i + 1]];
    const end = i === points.length - 1 ? last : {x: (a.x + 4 * b.x + c.x) / 6, y: (a.y + 4 * b.y + c.y) / 6};
    path += `C${at(between(a, b, 1 / 3))} ${at(between(a, b, 2 / 3))} ${at(end)}`;
  }
  return path;
}

function edgeElement(edge) {
  const kinds = new Set(edge.links.map((link) => link.kind));
  const kind = kinds.size === 1 ? [...kinds][0] : "data";
  return svg(
    "g",
    {class: `edge ${kind}${edge.links.length > 1 ? " many" : ""}`, "data-from": edge.from, "data-to": edge.to},
    svg("path", {d: smooth(edge.points), "marker-end": "url(#arrow)"}),
  );
}

/** Return the shape that an edge carries, on a background that hides the edges below it. */
function labelElement(edge) {
  const {width: across, height} = labelSize(edge.label);
  return svg(
    "g",
    {class: "edge label", "data-from": edge.from, "data-to": edge.to},
    svg("rect", {class: "behind-label", x: edge.x - across / 2, y: edge.y - height / 2, width: across, height, rx: 3}),
    svg("text", {x: edge.x, y: edge.y + 4}, edge.label),
  );
}

function clusterElement(cluster) {
  const left = cluster.x - cluster.width / 2;
  const top = cluster.y - cluster.height / 2;
  return svg(
    "g",
    {class: "cluster", "data-number": cluster.number},
    svg("rect", {x: left, y: top, width: cluster.width, height: cluster.height, rx: 12}),
  );
}

/** Return the title of an open group, above the edges that cross it. A click closes the group. */
function titleElement(cluster) {
  const group = groupOf(cluster.number);
  const left = cluster.x - cluster.width / 2;
  const top = cluster.y - cluster.height / 2;
  let label = printable(group.label);
  for (let most = label.length; most > 3 && width(`− ${label}`, "600 11px") > cluster.width - 20; most -= 1) label = shortened(printable(group.label), most);
  return svg(
    "g",
    {class: "cluster-title", "data-number": cluster.number},
    svg(
      "g",
      {class: "handle", role: "button", "aria-label": `Collapse ${printable(group.label)}`},
      svg("rect", {class: "bar", x: left, y: top, width: cluster.width, height: 20}),
      svg("text", {x: left + 10, y: top + 14}, `− ${label}`),
    ),
  );
}

function nodeElement(node, mode) {
  const {number} = node;
  const group = isGroup(number);
  const left = node.x - node.width / 2;
  const top = node.y - node.height / 2;
  const {title, subtitle, count} = textsOf(number);
  const colours = coloursOf(number, mode);
  const layer = group ? null : layers[number];
  const round = layer && ["Parameter", "Result"].includes(layer.type) ? node.height / 2 : 8;
  const sum = total(number);
  const size = {width: node.width, height: node.height, rx: round};
  const kind = group ? "group" : layer.hidden ? "constant" : "layer";
  const described = group
    ? `Group ${printable(groupOf(number).label)}, ${counted(sum.layers, "layer")}`
    : `${printable(layer.type)} ${printable(layer.label)} ${layer.outputs.map(shapeOf).join(" ")}`;
  const problems = sum.errors + sum.warnings;
  return svg(
    "g",
    {
      class: `node ${kind}${colours.fill ? " heated" : ""}`, id: `node-${number}`, "data-number": number, role: "button",
      "aria-label": problems ? `${described}, ${counted(problems, "finding")}` : described,
    },
    group && svg("rect", {class: "behind", x: left + 5, y: top + 5, ...size}),
    svg("rect", {class: "card", x: left, y: top, ...size, style: colours.fill ? {fill: colours.fill} : {}}),
    colours.stripe && round === 8 &&
      svg("path", {
        d: `M${left + 8},${top + 0.5}h-1a6.5 7.5 0 0 0 -6.5 7.5v${node.height - 16}a6.5 7.5 0 0 0 6.5 7.5h1z`,
        style: {fill: colours.stripe}, transform: "translate(-1.5 0)",
      }),
    svg("text", {class: "type", x: left + 15, y: top + 17.5}, title),
    svg("text", {class: "name", x: left + 15, y: top + 32}, subtitle),
    count && svg("text", {class: "count", x: left + node.width - 10, y: top + 17.5}, count),
    problems > 0 &&
      svg(
        "g",
        {class: `badge${sum.errors ? " error" : ""}`},
        svg("circle", {cx: left + node.width - 2, cy: top + 2, r: 8.5}),
        svg("text", {x: left + node.width - 2, y: top + 5.5}, problems > 99 ? "99" : String(problems)),
      ),
  );
}

function arrow(id) {
  return svg(
    "marker",
    {id, viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
    svg("path", {d: "M0,0.8L8,4L0,7.2z"}),
  );
}

/** Replace what the graph shows by a layout. */
export function draw(world, layout, mode) {
  const outermost = [...layout.clusters].sort((a, b) => b.width * b.height - a.width * a.height);
  world.replaceChildren(
    svg("defs", {}, arrow("arrow"), arrow("arrow-near")),
    ...outermost.map(clusterElement),
    ...layout.edges.map(edgeElement),
    ...layout.edges.filter((edge) => edge.label).map(labelElement),
    ...outermost.map(titleElement),
    ...layout.nodes.map((node) => nodeElement(node, mode)),
  );
}

/** Mark the selected node and the edges that begin or end there. */
export function mark(world, number) {
  world.querySelectorAll(".selected").forEach((element) => element.classList.remove("selected"));
  world.querySelector(`#node-${number}`)?.classList.add("selected");
  for (const edge of world.querySelectorAll(".edge")) {
    const near = number !== null && [edge.dataset.from, edge.dataset.to].includes(String(number));
    edge.classList.toggle("near", near);
    edge.querySelector("path")?.setAttribute("marker-end", near ? "url(#arrow-near)" : "url(#arrow)");
  }
}
