/** Make elements, and write numbers and names. Texts of the document only ever become text nodes. */

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    else if (name === "style") Object.entries(value).forEach(([key, text]) => element.style.setProperty(key, text));
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return an HTML element. The attribute `on` holds listeners, `style` CSS properties. */
export const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** Return an SVG element, likewise. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** Return a text with control and format characters as escapes, so that a name cannot hide or reorder text. */
export const printable = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

/** Return a text of at most `most` characters, with the middle left out. */
export function shortened(text, most) {
  const characters = [...text];
  if (characters.length <= most) return text;
  const end = Math.ceil((most - 1) / 2);
  return `${characters.slice(0, most - 1 - end).join("")}…${characters.slice(-end).join("")}`;
}

/** Return a number with six digits, as `irrun run` prints it; a dash if there is none. */
export function figure(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  return String(Number(value.toPrecision(6)));
}

/** Return a time in a readable unit. */
export function time(seconds) {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return `${(seconds * 1e6).toPrecision(3)} µs`;
}

export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;
/** Return a relative error: in percent if it is large enough to be read as one. */
export const relative = (error) => (!Number.isFinite(error) ? "an overflow" : error >= 1e-4 ? `${Number((error * 100).toPrecision(2))} %` : error.toExponential(1));
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

const canvas = document.createElement("canvas").getContext("2d");
const FAMILY = getComputedStyle(document.body).fontFamily;
const widths = new Map();

/** Return the width of a text in pixels. `font` is its weight and size, such as `600 12px`. */
export function width(text, font) {
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    canvas.font = `${font} ${FAMILY}`;
    widths.set(key, canvas.measureText(text).width);
  }
  return widths.get(key);
}
