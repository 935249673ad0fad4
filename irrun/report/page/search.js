/** The search box: layers by name, type or tensor, the best first. */

import {layers} from "./document.js";
import {counted, html, printable, shortened} from "./text.js";

const MOST_HITS = 40;

/** Return how well a layer matches a text in lower case: 0 is best, and null is not at all. */
function quality(layer, text) {
  const name = layer.name.toLowerCase();
  if (name === text) return 0;
  const label = layer.label.toLowerCase();
  if (label.endsWith(text) || name.split(/[/.]/).includes(text)) return 1;
  if (label.includes(text) || name.includes(text)) return layer.hidden ? 3 : 2;
  if (layer.type.toLowerCase().startsWith(text)) return 4;
  if (layer.outputs.some((output) => output.names.some((tensor) => tensor.toLowerCase().includes(text)))) return 5;
  return null;
}

/** Return the layers that match a text, the best first. */
export function found(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const hits = layers.map((layer) => ({layer, quality: quality(layer, wanted)})).filter((hit) => hit.quality !== null);
  return hits.sort((a, b) => a.quality - b.quality || a.layer.number - b.layer.number).map((hit) => hit.layer);
}

export class Search {
  /** `choose` is called with the number of the layer that the user chooses. */
  constructor(input, list, choose) {
    Object.assign(this, {input, list, choose, hits: [], at: 0});
    input.addEventListener("input", () => this.update());
    input.addEventListener("focus", () => this.update());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    input.addEventListener("keydown", (event) => this.key(event));
  }

  update() {
    this.hits = found(this.input.value);
    this.at = 0;
    this.show();
  }

  show() {
    const rows = this.hits.slice(0, MOST_HITS).map((layer, at) =>
      html(
        "li",
        {role: "option", id: `hit-${at}`, "aria-selected": String(at === this.at), on: {mousedown: (event) => { event.preventDefault(); this.take(at); }}},
        html("span", {class: "name"}, printable(shortened(layer.name, 90))), html("span", {class: "kind"}, printable(layer.type)),
      ),
    );
    const text = this.input.value.trim();
    const more = this.hits.length > MOST_HITS ? `${counted(this.hits.length, "layer")} in all` : text && !rows.length ? "no layer has this name" : "";
    this.list.replaceChildren(...rows, ...(more ? [html("li", {class: "note", role: "presentation"}, more)] : []));
    this.list.hidden = !this.list.children.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    if (rows.length) this.input.setAttribute("aria-activedescendant", `hit-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.list.querySelector("[aria-selected=true]")?.scrollIntoView({block: "nearest"});
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  take(at) {
    const layer = this.hits[at];
    if (!layer) return;
    this.close();
    this.choose(layer.number);
  }

  key(event) {
    const last = Math.min(this.hits.length, MOST_HITS) - 1;
    if (event.key === "Enter") this.take(this.at);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = Math.min(last, Math.max(0, this.at + (event.key === "ArrowDown" ? 1 : -1)));
      this.show();
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.close();
      this.input.blur();
      document.getElementById("graph").focus();
    }
    event.stopPropagation();
  }
}
