/** What the colour of a node means: its type, its time, its error, or its element type. */

import {agrees, errorOf, groupOf, isGroup, layers, layersIn, report, total, typeOf} from "./document.js";
import {html, time} from "./text.js";

const PALETTE = 7;

/** Return the most frequent of some texts, each with the number of its colour. */
function ranked(texts) {
  const counts = new Map();
  texts.forEach((text) => text && counts.set(text, (counts.get(text) ?? 0) + 1));
  const first = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, PALETTE);
  return new Map(first.map(([text], at) => [text, at]));
}

const shown = layers.filter((layer) => !layer.hidden);
const plain = ["Parameter", "Result", "Const"];
const types = ranked(shown.filter((layer) => !plain.includes(layer.type)).map((layer) => layer.type));
const precisions = ranked(shown.map(typeOf));
const longest = layers.reduce((most, layer) => Math.max(most, layer.seconds), 0);

/** The ways to colour nodes that the report has data for. */
export const MODES = [
  ["type", "by type"],
  ...(longest ? [["time", "by time"]] : []),
  ...(report.comparison ? [["error", "by error"]] : []),
  ["precision", "by precision"],
];

const stripe = (number) => (number === undefined ? "var(--c7)" : `var(--c${number})`);
const heat = (colour, share) => `color-mix(in oklab, ${colour} ${Math.round(share * 75)}%, var(--surface))`;

/** From 0 for an error of 1e-8 to 1 for an error of 1 or more. */
const severity = (error) => Math.min(1, Math.max(0, (Math.log10(Math.max(error, 1e-8)) + 8) / 8));

/** Return the only value of all layers in a group, or undefined. */
function common(number, value) {
  let only;
  for (const layer of layersIn(number)) {
    if (layer.hidden || plain.includes(layer.type)) continue;
    if (only !== undefined && only !== value(layer)) return undefined;
    only = value(layer);
  }
  return only;
}

/** Return the colours of a node: `stripe` for its edge at the left, and `fill` if its whole area is coloured. */
export function coloursOf(number, mode) {
  const group = isGroup(number);
  if (mode === "time") {
    const {seconds} = total(number);
    return seconds ? {fill: heat("var(--heat)", Math.sqrt(Math.min(1, seconds / longest))), stripe: "var(--heat)"} : {};
  }
  if (mode === "error") {
    const error = group ? total(number).error : errorOf(layers[number]);
    const inside = group ? total(number).agrees : agrees(layers[number]);
    if (error === null) return {};
    return {fill: heat(inside ? "var(--c0)" : "var(--bad)", 0.15 + 0.85 * severity(error)), stripe: inside ? "var(--c0)" : "var(--bad)"};
  }
  if (mode === "precision") {
    const type = group ? common(number, typeOf) : typeOf(layers[number]);
    return type === undefined && group ? {} : {stripe: stripe(precisions.get(type))};
  }
  if (group) return groupOf(number).owner >= 0 ? {stripe: "var(--muted)"} : {};
  return plain.includes(layers[number].type) ? {} : {stripe: stripe(types.get(layers[number].type))};
}

/** Return the elements of the legend for a mode. */
export function legend(mode) {
  const swatch = (colour, text) => html("span", {}, html("i", {style: {background: colour}}), text);
  const ramp = (colour, from, to) =>
    html("span", {}, from, html("i", {class: "ramp", style: {background: `linear-gradient(to right, ${heat(colour, 0.05)}, ${heat(colour, 1)})`}}), to);
  if (mode === "time") return [ramp("var(--heat)", "0", `${time(longest)} per run`)];
  if (mode === "error") return [ramp("var(--c0)", "within tolerance: 1e-8", "1"), ramp("var(--bad)", "outside: 1e-8", "1")];
  const entries = [...(mode === "precision" ? precisions : types)].map(([text, at]) => swatch(stripe(at), text));
  return mode === "type" && new Set(shown.map((layer) => layer.type)).size > PALETTE + 3 ? [...entries, swatch(stripe(), "other")] : entries;
}
