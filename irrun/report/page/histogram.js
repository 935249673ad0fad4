/** A small bar chart of how the elements of a value are distributed. */

import {figure, html, svg} from "./text.js";

const HEIGHT = 60;

/** Return the chart of a row of statistics, or a line that says why there is none. */
export function histogram(row) {
  if (!row.counts) {
    const why = row.size === 0 ? "no elements" : row.type === "string" ? "strings have no histogram"
      : row.min === null ? "no finite element" : row.min === row.max ? `every element is ${figure(row.min)}` : "the range is too wide for a histogram";
    return html("p", {class: "muted"}, why);
  }
  const most = Math.max(...row.counts);
  const width = 360 / row.counts.length;
  const bars = row.counts.map((count, at) => {
    const height = count ? Math.max(1.5, (count / most) * HEIGHT) : 0;
    const from = row.low + ((row.high - row.low) * at) / row.counts.length;
    const to = row.low + ((row.high - row.low) * (at + 1)) / row.counts.length;
    return svg(
      "rect",
      {x: at * width + 0.5, y: HEIGHT - height, width: width - 1, height},
      svg("title", {}, `${figure(from)} to ${figure(to)}: ${count.toLocaleString("en")}`),
    );
  });
  return [
    svg(
      "svg",
      {class: "histogram", viewBox: `0 0 360 ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `Histogram from ${figure(row.low)} to ${figure(row.high)}`},
      svg("line", {x1: 0, x2: 360, y1: HEIGHT, y2: HEIGHT}),
      bars,
    ),
    html("div", {class: "ends"}, html("span", {}, figure(row.low)), html("span", {}, figure(row.high))),
  ];
}
