// Scales, axes, curves and contours.

import { number, svg } from "./dom.js";

/** Return round numbers between two ends. */
export function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const magnitude = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10, 20].map((k) => k * magnitude).find((k) => span / k <= most);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

export function scale([low, high], [from, to]) {
  const map = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  map.inverse = (place) => low + ((place - from) / (to - from)) * (high - low);
  map.domain = [low, high];
  map.range = [from, to];
  return map;
}

const short = (value) => Math.round(10 * value) / 10;

/** Return the path through points. */
export function line(x, y) {
  return Array.from(x, (value, k) => `${k ? "L" : "M"}${short(value)} ${short(y[k])}`).join("");
}

/** Return the path of the area between points and a floor. */
export function area(x, y, floor) {
  const last = x.length - 1;
  return `${line(x, y)}L${short(x[last])} ${short(floor)}L${short(x[0])} ${short(floor)}Z`;
}

/** Ends of the axis of a column: a grid, or the numbers of categories with some room. */
export function ends(axis) {
  const { points, categories } = axis;
  const room = categories ? 0.5 : 0;
  return [points[0] - room, points[points.length - 1] + room];
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Draw a horizontal axis at the height `y`. */
export function xAxis(x, y, label, categories = null) {
  const [from, to] = x.range;
  const group = svg("g", { class: "axis" }, svg("path", { d: `M${from} ${y}H${to}` }));
  const places = categories ? categories.map((_, k) => k) : ticks(...x.domain, (to - from) / 62);
  const room = categories ? Math.floor((to - from) / categories.length / 6.5) : 0;
  for (const value of places) {
    const text = categories ? cut(categories[value], Math.max(room, 2)) : number(value);
    group.append(
      svg("path", { d: `M${short(x(value))} ${y}v4` }),
      svg("text", { x: short(x(value)), y: y + 17, class: "middle" }, text),
    );
  }
  group.append(svg("text", { x: (from + to) / 2, y: y + 35, class: "middle name" }, cut(label, 48)));
  return group;
}

/** Draw a vertical axis at the place `x`, with lines across to `right`. */
export function yAxis(y, x, right, label, categories = null) {
  const [from, to] = y.range;
  const group = svg("g", { class: "axis" });
  const places = categories ? categories.map((_, k) => k) : ticks(...y.domain, (from - to) / 44);
  for (const value of places) {
    const text = categories ? cut(categories[value], 7) : number(value);
    group.append(
      categories ? "" : svg("path", { class: "grid", d: `M${x} ${short(y(value))}H${right}` }),
      svg("text", { x: x - 6, y: short(y(value)) + 4, class: "end" }, text),
    );
  }
  group.append(svg("text", { x: 2, y: 12, class: "name" }, cut(label, 48)));
  return group;
}

const EDGES = [[], [[3, 0]], [[0, 1]], [[3, 1]], [[1, 2]], [[3, 0], [1, 2]], [[0, 2]], [[3, 2]],
  [[2, 3]], [[2, 0]], [[0, 1], [2, 3]], [[2, 1]], [[1, 3]], [[1, 0]], [[0, 3]], []];

/** Return the path along which values on a grid equal a level (marching squares). */
export function contour(values, xs, ys, level) {
  const parts = [];
  const between = (a, b, p, q) => p + ((level - a) / (b - a)) * (q - p);
  for (let i = 0; i + 1 < xs.length; i++) {
    for (let j = 0; j + 1 < ys.length; j++) {
      const corners = [values[i][j], values[i + 1][j], values[i + 1][j + 1], values[i][j + 1]];
      const kind = corners.reduce((sum, v, k) => sum + (v > level ? 1 << k : 0), 0);
      if (kind === 0 || kind === 15) continue;
      const [a, b, c, d] = corners;
      const sides = [
        () => [between(a, b, xs[i], xs[i + 1]), ys[j]],
        () => [xs[i + 1], between(b, c, ys[j], ys[j + 1])],
        () => [between(d, c, xs[i], xs[i + 1]), ys[j + 1]],
        () => [xs[i], between(a, d, ys[j], ys[j + 1])],
      ];
      for (const [from, to] of EDGES[kind]) {
        const [x1, y1] = sides[from]();
        const [x2, y2] = sides[to]();
        parts.push(`M${short(x1)} ${short(y1)}L${short(x2)} ${short(y2)}`);
      }
    }
  }
  return parts.join("");
}

const MARKS = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${2.3 * r}h${-2.6 * r}z`,
  (x, y, r) => `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
];

/** Return the path of a mark; classes differ in shape as well as in colour. */
export function mark(x, y, radius, place) {
  return MARKS[place % MARKS.length](short(x), short(y), radius);
}

/** Draw again whenever the width of a box changes. */
export function whenResized(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth !== width) {
      width = box.clientWidth;
      if (width > 0) draw(width);
    }
  }).observe(box);
}
