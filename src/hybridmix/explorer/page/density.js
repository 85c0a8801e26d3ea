// Densities of one or two columns.

import { contour, ends, line, mark, scale, whenResized, xAxis, yAxis } from "./charts.js";
import { card, colour, h, labelled, number, options, percent, svg } from "./dom.js";

const HEIGHT = 380;
const LEFT = 52;
const RIGHT = 12;
const TOP = 26;
const BOTTOM = 46;

function colours(n) {
  const style = getComputedStyle(document.documentElement);
  return Array.from({ length: Math.min(n, 6) }, (_, k) => {
    const text = style.getPropertyValue(`--s${k}`).trim().slice(1);
    return [0, 2, 4].map((from) => parseInt(text.slice(from, from + 2), 16));
  });
}

// Categories are bands of this many pixels, with a gap; numbers are one pixel each.
const BAND = 12;
// Marks repeat from here on: there are six colours and four forms.
const MOST_CLASSES = 12;

/** Paint the density: colours are classes, strength is density and lead. */
function paint(canvas, { level, winner, share, axes }, n) {
  const [wide, high] = axes.map((axis) => (axis.categories ? BAND : 1));
  const [columns, rows] = [wide * level.length, high * level[0].length];
  [canvas.width, canvas.height] = [columns, rows];
  const palette = colours(n);
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const isGap = (place, size) => size > 1 && place % size === 0;
  for (let x = 0; x < columns; x++) {
    for (let y = 0; y < rows; y++) {
      const [i, j] = [Math.floor(x / wide), Math.floor(y / high)];
      const [r, g, b] = palette[winner[i][j] % 6];
      const certainty = n > 1 ? (share[i][j] - 1 / n) / (1 - 1 / n) : 1;
      const strength = isGap(x, wide) || isGap(y, high)
        ? 0 : 150 * Math.sqrt(level[i][j]) * (0.3 + 0.7 * certainty);
      image.data.set([r, g, b, strength], 4 * ((rows - 1 - y) * columns + x));
    }
  }
  context.putImageData(image, 0, 0);
}

/** The card of densities; clicking into the picture moves the row. */
export class Densities {
  constructor(about, ask, move) {
    this.about = about;
    this.move = move;
    this.answer = null;
    this.cells = [];
    const usable = about.columns.map((column, place) => [String(place), column.name])
      .filter((_, place) => about.columns[place].kind !== "unused");
    const again = () => ask();
    this.first = h("select", { onchange: again }, ...options(usable, usable[0][0]));
    this.second = h("select", { onchange: again },
      ...options([["", "nothing else"], ...usable], ""));
    this.withComponents = h("input", { type: "checkbox", onchange: () => this.draw() });
    this.box = h("div", { class: "chart plot", onclick: (event) => this.click(event) });
    this.legend = h("ul", { class: "legend" });
    this.words = h("p", { class: "words" });
    this.element = card("densities", "Densities",
      h("div", { class: "controls" },
        labelled("Column", this.first), labelled("and", this.second),
        h("label", { class: "check" }, this.withComponents, " components")),
      this.box, this.legend, this.words);
    whenResized(this.box, () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Choose which columns are shown. */
  choose(columns) {
    [this.first.value, this.second.value] = [String(columns[0]), String(columns[1] ?? "")];
  }

  question() {
    const columns = [Number(this.first.value)];
    if (this.second.value !== "" && this.second.value !== this.first.value) {
      columns.push(Number(this.second.value));
    }
    this.columns = columns;
    return { columns };
  }

  show(answer) {
    this.answer = answer;
    this.shown = [...this.columns];
    this.draw();
  }

  /** Take note of the cells of the row, which are marked. */
  mark(cells) {
    this.cells = cells;
    this.draw();
  }

  names() {
    const { task, classes } = this.about;
    return task === "classes" ? classes : ["all rows"];
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.answer || !width) return;
    const { axes } = this.answer;
    this.x = scale(ends(axes[0]), [LEFT, width - RIGHT]);
    const picture = svg("svg", { width, height: HEIGHT, role: "img", "aria-label": this.title() });
    if (axes.length === 1) this.drawCurves(picture, width);
    else this.drawMap(picture, width);
    this.picture = picture;
    this.showLegend();
  }

  title() {
    return `Density of ${this.answer.axes.map((axis) => axis.name).join(" and ")}` +
      (this.about.task === "classes" ? " by class" : "");
  }

  showLegend() {
    const names = this.names();
    const byClass = this.answer.classes?.length > 1 || this.answer.axes.length === 2;
    const shown = byClass && names.length > 1 ? names.slice(0, MOST_CLASSES) : [];
    const others = shown.length ? names.length - shown.length : 0;
    this.legend.replaceChildren(...shown.map((name, place) =>
      h("li", {}, svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" },
        svg("path", { class: `dot ${colour(place)}`, d: mark(6, 6, 4, place) })), name)),
      ...(others ? [h("li", {}, `and ${others} more, with the same marks again`)] : []));
    const click = this.answer.axes.some((axis) => !axis.categories)
      ? " Click into the picture to move the row there." : "";
    const curves = this.answer.axes[0].categories
      ? "Bars: the model, with all other columns integrated out. Diamonds: the rows."
      : "Curves: the model, with all other columns integrated out. Steps: the rows.";
    this.words.textContent = (this.answer.axes.length === 1 ? curves
      : "Contours enclose 50 % and 90 % of the rows of the model; marks are rows of the table.") + click;
  }

  // One column

  drawCurves(picture, width) {
    const { axes: [axis], classes, components, bins, spikes } = this.answer;
    const withComponents = this.withComponents.checked;
    const heights = [...classes.flat(), ...bins.heights.flat()];
    const y = scale([0, Math.max(...heights, 1e-300) * 1.05], [HEIGHT - BOTTOM, TOP]);
    this.y = null;
    const floor = y(0);
    picture.append(yAxis(y, LEFT, width - RIGHT, axis.categories ? "probability" : "density"));
    if (axis.categories) this.drawBars(picture, y);
    else {
      bins.heights.forEach((own, place) => picture.append(svg("path", {
        class: `steps ${bins.heights.length > 1 ? colour(place) : "s5"}`, d: this.steps(bins.edges, own, y),
      })));
      if (withComponents) {
        components.forEach((own, k) => picture.append(svg("path", {
          class: `component ${colour(this.answer.component_classes[k])}`,
          d: line(axis.points.map(this.x), own.map(y)),
        })));
      }
      classes.forEach((own, place) => picture.append(svg("path", {
        class: `line ${colour(place)}`, d: line(axis.points.map(this.x), own.map(y)),
      })));
      for (const { value, masses } of spikes) {
        masses.forEach((mass, place) => picture.append(svg("path", {
          class: `line solid ${colour(place)}`,
          d: `M${this.x(value) + 3 * place} ${floor}V${floor - mass * (floor - TOP)}`,
        }, svg("title", {}, `${number(value)}: ${percent(mass)}`))));
      }
    }
    picture.append(xAxis(this.x, floor, axis.name, axis.categories));
    const value = this.cells[this.shown[0]] ?? null;
    if (value !== null) {
      picture.append(svg("path", { class: "here", d: `M${this.x(value)} ${TOP}V${floor}` }));
    }
    this.box.replaceChildren(picture);
  }

  steps(edges, heights, y) {
    const points = heights.map((own, k) => `H${this.x(edges[k])}V${y(own)}H${this.x(edges[k + 1])}`);
    return `M${this.x(edges[0])} ${y(0)}${points.join("")}V${y(0)}Z`;
  }

  drawBars(picture, y) {
    const { axes: [axis], classes, bins } = this.answer;
    const width = 0.8 / classes.length;
    classes.forEach((own, place) => own.forEach((share, k) => {
      const left = this.x(k - 0.4 + place * width);
      picture.append(svg("rect", {
        class: `area ${colour(place)}`, x: left, width: Math.max(this.x(k - 0.4 + (place + 1) * width) - left - 1, 1),
        y: y(share), height: y(0) - y(share),
      }, svg("title", {}, `${axis.categories[k]}: ${percent(share)}`)));
      const rows = bins.heights.length > 1 ? bins.heights[place]?.[k] : null;
      if (rows) picture.append(svg("path", { class: "dot rows", d: mark(left + (this.x(k - 0.4 + (place + 1) * width) - left) / 2, y(rows), 3, 3) }));
    }));
  }

  // Two columns

  drawMap(picture, width) {
    const { axes: [across, up], rows, contours, ellipses, level } = this.answer;
    const x = this.x;
    const y = scale(ends(up), [HEIGHT - BOTTOM, TOP]);
    this.y = y;
    const canvas = h("canvas", { "aria-hidden": "true" });
    paint(canvas, this.answer, this.names().length);
    Object.assign(canvas.style, {
      left: `${LEFT}px`, top: `${TOP}px`,
      width: `${width - LEFT - RIGHT}px`, height: `${HEIGHT - TOP - BOTTOM}px`,
    });
    picture.append(yAxis(y, LEFT, width - RIGHT, up.name, up.categories));
    if (!across.categories && !up.categories) {
      const [xs, ys] = [across.points.map(x), up.points.map(y)];
      for (const own of contours) {
        picture.append(svg("path", { class: "contour", d: contour(level, xs, ys, own) }));
      }
    }
    const clip = svg("clipPath", { id: "plot-area" }, svg("rect", {
      x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM,
    }));
    const inner = svg("g", { "clip-path": "url(#plot-area)" });
    rows.x.forEach((value, k) => {
      const place = rows.label[k];
      const [shiftX, shiftY] = [across, up].map((axis, j) =>
        axis.categories ? 0.5 * (((rows.row[k] * (j ? 7919 : 104729)) % 997) / 997 - 0.5) : 0);
      inner.append(svg("path", {
        class: `dot ${place < 0 ? "unlabelled" : colour(place)}`,
        d: mark(x(value + shiftX), y(rows.y[k] + shiftY), 2.4, Math.max(place, 0)),
      }));
    });
    if (this.withComponents.checked) {
      for (const own of ellipses) {
        inner.append(svg("path", { class: `component ${colour(own.class)}`, d: `${line(own.x.map(x), own.y.map(y))}Z` }));
      }
    }
    const [a, b] = this.shown.map((column) => this.cells[column] ?? null);
    if (a !== null && b !== null) {
      inner.append(svg("path", { class: "here point", d: mark(x(a), y(b), 7, 0) }));
    } else if (a !== null) inner.append(svg("path", { class: "here", d: `M${x(a)} ${TOP}V${HEIGHT - BOTTOM}` }));
    else if (b !== null) inner.append(svg("path", { class: "here", d: `M${LEFT} ${y(b)}H${width - RIGHT}` }));
    picture.append(clip, inner, xAxis(x, HEIGHT - BOTTOM, across.name, across.categories));
    this.box.replaceChildren(canvas, picture);
  }

  click(event) {
    const box = this.box.getBoundingClientRect();
    const places = [this.x?.inverse(event.clientX - box.left), this.y?.inverse(event.clientY - box.top)];
    const values = {};
    this.answer.axes.forEach((axis, k) => {
      const [low, high] = ends(axis);
      const value = Math.min(Math.max(places[k], low), high);
      const last = axis.points.length - 1;
      values[this.shown[k]] = axis.categories
        ? Math.min(Math.max(Math.round(value), 0), last) : Number(value.toPrecision(5));
    });
    this.move(values);
  }
}

