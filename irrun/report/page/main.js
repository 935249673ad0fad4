/** Puts the page together: the state, what a click and a key do, and the address of a layer. */

import {Camera} from "./camera.js";
import {legend, MODES} from "./colours.js";
import {details} from "./details.js";
import {ancestors, isGroup, layers, parents, report, ROOT} from "./document.js";
import {draw, mark} from "./drawing.js";
import {help, neighbour} from "./keyboard.js";
import {laidOut} from "./layout.js";
import {chips, overview} from "./overview.js";
import {Search} from "./search.js";
import {html, printable} from "./text.js";
import {closeGroup, countVisible, MOST_NODES, openGroups, view, visibleGraph} from "./visible.js";

const byId = (id) => document.getElementById(id);
const [graph, world, panel, colour] = ["graph", "world", "panel", "colour"].map(byId);
const camera = new Camera(graph, world);
const state = {selected: null, layout: null, mode: "type"};
/** Nodes are not shown smaller than this at first: their smallest text is then 11 pixels high. */
const LEGIBLE = 1;

/** Draw the visible graph. The node or cluster `anchor` keeps its place in the window. */
function redraw(anchor = null) {
  const before = place(anchor);
  state.layout = laidOut(visibleGraph());
  draw(world, state.layout, state.mode);
  mark(world, state.selected);
  const after = place(anchor);
  if (before && after) {
    camera.x += (before.x - after.x) * camera.scale;
    camera.y += (before.top - after.top) * camera.scale;
    camera.apply();
  }
}

/** Return where a node or cluster is, or the closed group that now stands for it, or null if it is not drawn. */
function place(number) {
  if (number === null || !state.layout) return null;
  const drawn = new Map([...state.layout.clusters, ...state.layout.nodes].map((item) => [item.number, item]));
  const found = [number, ...ancestors(number)].map((one) => drawn.get(one)).find(Boolean);
  return found ? {x: found.x, y: found.y, top: found.y - found.height / 2} : null;
}

function bounds() {
  const items = [...state.layout.nodes, ...state.layout.clusters];
  const [left, top] = ["x", "y"].map((axis) => Math.min(...items.map((item) => item[axis] - item[axis === "x" ? "width" : "height"] / 2)));
  const [right, bottom] = ["x", "y"].map((axis) => Math.max(...items.map((item) => item[axis] + item[axis === "x" ? "width" : "height"] / 2)));
  return items.length ? {x: left, y: top, width: right - left, height: bottom - top} : {x: 0, y: 0, width: 1, height: 1};
}

/** Select a layer or group, which becomes visible; null selects nothing. */
function select(number, {centre = true} = {}) {
  state.selected = number;
  if (number !== null) {
    const closed = ancestors(number).filter((group) => !view.open.has(group));
    const isHidden = !isGroup(number) && layers[number].hidden && !view.constants && !view.revealed.has(number);
    if (isHidden) view.revealed.add(number);
    if (closed.length) openGroups(closed);
    if (closed.length || isHidden) redraw();
    const found = place(number);
    if (found && centre) camera.show(found, closed.length > 0);
  }
  mark(world, number);
  panel.replaceChildren(...(number === null ? overview(select) : details(number, {select, toggle})).flat(Infinity).filter(Boolean));
  panel.scrollTop = 0;
  if (number === null) graph.removeAttribute("aria-activedescendant");
  else graph.setAttribute("aria-activedescendant", `node-${number}`);
  const address = number === null || isGroup(number) ? " " : `#layer=${encodeURIComponent(layers[number].name)}`;
  if (location.protocol !== "about:") history.replaceState(null, "", address.trim() || location.pathname + location.search);
}

/** Open a closed group, or close an open one. */
function toggle(number) {
  if (view.open.has(number)) closeGroup(number);
  else openGroups([number]);
  redraw(number);
  select(number, {centre: false});
}

function reset() {
  view.open = new Set(report.open);
  view.revealed.clear();
  state.selected = null;
  redraw();
  camera.fit(bounds(), LEGIBLE);
  select(null);
}

function setConstants(on) {
  view.constants = on;
  const count = countVisible(view.open);
  if (count > MOST_NODES) view.constants = false;
  const note = count > MOST_NODES && html("span", {class: "verdict bad"}, `${count} nodes with constants: close groups first`);
  byId("legend").replaceChildren(...legend(state.mode), ...(note ? [note] : []));
  byId("constants").setAttribute("aria-pressed", String(view.constants));
  redraw(state.selected);
}

function setColour(mode) {
  state.mode = colour.value = mode;
  byId("legend").replaceChildren(...legend(mode));
  if (state.layout) {
    draw(world, state.layout, mode);
    mark(world, state.selected);
  }
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "☾" : "☀";
}

/** Select the layer of the next finding, or of the previous one. */
function nextFinding(step) {
  const places = [...new Set(report.findings.map((finding) => finding.layer).filter((layer) => layer !== null))];
  if (!places.length) return;
  const at = places.indexOf(state.selected);
  select(places[at < 0 ? (step > 0 ? 0 : places.length - 1) : (at + step + places.length) % places.length]);
}

/** Open the selected group, or close the group around the selected layer. */
function enter() {
  if (state.selected === null) return;
  if (isGroup(state.selected)) toggle(state.selected);
  else if (parents[state.selected] !== ROOT) toggle(parents[state.selected]);
}

const ACTIONS = {
  "/": () => byId("search").focus(),
  "+": () => camera.zoom(1.25),
  "=": () => camera.zoom(1.25),
  "-": () => camera.zoom(0.8),
  0: () => camera.fit(bounds()),
  "?": () => byId("keys").showModal(),
  c: () => setConstants(!view.constants),
  r: reset,
  t: switchTheme,
  n: () => nextFinding(1),
  p: () => nextFinding(-1),
  Enter: enter,
  Escape: () => select(null),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const isControl = event.target.closest?.("button, select, input, pre");
  if (isControl && !["/", "Escape", "?"].includes(event.key)) return;
  if (event.key.startsWith("Arrow")) {
    if (panel.contains(event.target)) return;
    const next = neighbour(state.layout, state.selected, event.key);
    if (next !== null) select(next);
  } else if (Object.hasOwn(ACTIONS, event.key)) ACTIONS[event.key]();
  else return;
  event.preventDefault();
}

function onClick(event) {
  if (camera.dragged) return;
  const handle = event.target.closest(".handle");
  if (handle) {
    toggle(Number(handle.parentNode.dataset.number));
    return;
  }
  const item = event.target.closest("[data-number]");
  if (!item) select(null);
  else select(Number(item.dataset.number), {centre: false});
}

/** Select the layer that the address names. */
function followAddress() {
  const match = /^#layer=(.*)$/s.exec(location.hash);
  if (!match) return;
  let name = match[1];
  try {
    name = decodeURIComponent(name);
  } catch {
    return; // no address that this page has written
  }
  const found = layers.find((layer) => layer.name === name) ?? layers.find((layer) => layer.label === name);
  if (found) select(found.number);
}

function start() {
  byId("title").textContent = printable(report.model.name || report.file.split("/").pop());
  byId("chips").replaceChildren(...chips(select).filter(Boolean));
  byId("keys").replaceChildren(...help(), html("form", {method: "dialog"}, html("button", {class: "jump"}, "close (Esc)")));
  colour.replaceChildren(...MODES.map(([mode, text]) => html("option", {value: mode}, text)));
  setColour("type");
  byId("theme").textContent = matchMedia("(prefers-color-scheme: dark)").matches ? "☾" : "☀";
  graph.addEventListener("click", onClick);
  graph.addEventListener("dblclick", (event) => {
    const item = event.target.closest(".node");
    if (item && isGroup(Number(item.dataset.number))) toggle(Number(item.dataset.number));
  });
  document.addEventListener("keydown", onKey);
  colour.addEventListener("change", () => setColour(colour.value));
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", ACTIONS["?"]);
  byId("closer").addEventListener("click", ACTIONS["+"]);
  byId("farther").addEventListener("click", ACTIONS["-"]);
  byId("fit").addEventListener("click", ACTIONS["0"]);
  byId("collapse").addEventListener("click", reset);
  byId("constants").addEventListener("click", ACTIONS.c);
  window.addEventListener("hashchange", followAddress);
  new Search(byId("search"), byId("hits"), (number) => {
    select(number);
    graph.focus();
  });
  redraw();
  camera.fit(bounds(), LEGIBLE);
  const address = location.hash;
  select(null);
  if (address) {
    history.replaceState(null, "", address);
    followAddress();
  }
  graph.focus({preventScroll: true});
  requestAnimationFrame(() => {
    performance.mark("irrun-drawn");
    document.documentElement.dataset.drawn = String(Math.round(performance.now()));
  });
}

start();
