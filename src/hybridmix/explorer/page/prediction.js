// What the model says about the row as a whole.

import { area, line, scale, whenResized, xAxis } from "./charts.js";
import { button, card, colour, h, number, percent, rarity, svg } from "./dom.js";

// Of more classes than these, the most probable ones are shown.
const MOST_BARS = 10;
const FEW_BARS = 6;
const HEIGHT = 190;
// The scale of typicalities ends here: one row in a million.
const LEAST = Math.log(1e-6);

/** Bars of the probabilities of classes or components. */
export class Bars {
  constructor(names) {
    this.names = names;
    this.list = h("ol", { class: "bars" });
    this.nShown = names.length > MOST_BARS ? FEW_BARS : names.length;
    this.others = h("p", { class: "words" });
    this.element = h("div", {}, this.list, this.others);
    this.items = names.slice(0, this.nShown).map((_, place) => {
      const item = {
        name: h("span", { class: "name" }), label: h("span", { class: "chip" }, "label"),
        bar: h("span", { class: "fill" }), value: h("span", { class: "value" }),
      };
      item.name.id = `bar-${place}`;
      this.list.append(h("li", {}, h("span", {}, item.name, item.label),
        h("span", { class: "track" }, item.bar), item.value));
      return item;
    });
  }

  show(shares, label) {
    let order = shares.map((_, place) => place);
    if (shares.length > this.nShown) {
      order.sort((a, b) => shares[b] - shares[a]);
      const rest = order.slice(this.nShown).reduce((sum, place) => sum + shares[place], 0);
      this.others.textContent = `${shares.length - this.nShown} others: ${percent(rest)}`;
    }
    order = order.slice(0, this.nShown);
    const best = shares.indexOf(Math.max(...shares));
    this.items.forEach((item, k) => {
      const place = order[k];
      item.name.textContent = this.names[place];
      item.name.title = this.names[place];
      item.bar.className = `fill ${colour(place)}`;
      item.bar.style.width = `${100 * shares[place]}%`;
      item.value.textContent = percent(shares[place]);
      item.label.hidden = place !== label;
      item.bar.closest("li").classList.toggle("best", place === best);
    });
  }
}

/** The predictive density of a target. */
class TargetChart {
  constructor(name) {
    this.name = name;
    this.box = h("div", { class: "chart" });
    this.words = h("p", { class: "words" });
    this.element = h("figure", {}, this.box, this.words);
    whenResized(this.box, () => this.draw());
  }

  show(answer, target) {
    this.answer = answer;
    this.target = target;
    const [low, , , high] = answer.quantiles;
    const known = target === null || target === undefined
      ? "" : ` In the table it is ${number(target)}.`;
    this.words.textContent = `${this.name}: ${number(answer.mean)} ± ${number(answer.deviation)}; ` +
      `90 % between ${number(low)} and ${number(high)}.${known}`;
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.answer || !width) return;
    const { points, density, quantiles, mean, spikes } = this.answer;
    const x = scale([points[0], points[points.length - 1]], [8, width - 8]);
    const floor = HEIGHT - 44;
    const most = Math.max(...density, 1e-300);
    const y = density.map((value) => floor - (value / most) * (floor - 22));
    const xs = points.map(x);
    const inside = (low, high) => {
      const kept = points.map((value, k) => k).filter((k) => points[k] >= low && points[k] <= high);
      return kept.length > 1 ? area(kept.map((k) => xs[k]), kept.map((k) => y[k]), floor) : "";
    };
    const [q05, q25, q75, q95] = quantiles;
    const known = this.target === null || this.target === undefined ? [] : [
      svg("path", { class: "truth", d: `M${x(this.target)} 16V${floor}` }),
      svg("text", { class: "middle name", x: Math.min(Math.max(x(this.target), 36), width - 36), y: 11 }, "in the table"),
    ];
    this.box.replaceChildren(svg("svg", {
      width, height: HEIGHT, role: "img", "aria-label": `Predictive density of ${this.name}`,
    },
    svg("path", { class: "area s0 faint", d: area(xs, y, floor) }),
    svg("path", { class: "area s0", d: inside(q05, q95) }),
    svg("path", { class: "area s0", d: inside(q25, q75) }),
    svg("path", { class: "line s0", d: line(xs, y) }),
    ...spikes.map(([value, mass]) => svg("path", { class: "line s1 solid", d: `M${x(value)} ${floor}V${floor - mass * (floor - 22)}` })),
    svg("path", { class: "mean", d: `M${x(mean)} ${floor}v-${floor - 22}` }),
    ...known,
    xAxis(x, floor, this.name)));
  }
}

/** How typical the row is, on a logarithmic scale. */
export class Gauge {
  constructor(threshold, units = "rows") {
    this.threshold = threshold;
    this.units = units;
    this.marker = h("span", { class: "marker" });
    this.words = h("p", { class: "words" });
    const rare = h("span", { class: "rare" });
    rare.style.width = `${this.place(threshold)}%`;
    this.element = h("div", { class: "gauge" },
      h("div", { class: "scale", "aria-hidden": "true" }, rare, this.marker),
      h("div", { class: "ends", "aria-hidden": "true" },
        h("span", {}, "1 in a million"), h("span", {}, "every row")), this.words);
  }

  place(typicality) {
    return 100 * (1 - Math.max(typicality, LEAST) / LEAST);
  }

  show(typicality) {
    const isRare = typicality < this.threshold;
    this.marker.style.left = `${this.place(typicality)}%`;
    this.element.classList.toggle("is-rare", isRare);
    const strong = h("strong", {}, isRare ? "Unusual" : "Typical");
    this.words.replaceChildren(strong,
      `: ${rarity(typicality)} of the model’s own ${this.units} are as improbable or more.`);
  }
}

/** Return the columns without which an unusual row would be most typical. */
export function guiltyCells(answer, threshold) {
  if (answer.typicality >= threshold) return [];
  return answer.cells.filter((cell) => (cell.rise ?? 0) > 0.5)
    .sort((a, b) => b.rise - a.rise).slice(0, 3);
}

/** The card with all of it. */
export class Prediction {
  constructor(about, focusCell) {
    this.about = about;
    this.focusCell = focusCell;
    this.gauge = new Gauge(about.threshold);
    this.guilty = h("ul", { class: "guilty-list" });
    this.bars = null;
    this.targets = [];
    const parts = [];
    if (about.task === "numbers") {
      this.targets = about.targets.map((name) => new TargetChart(name));
      parts.push(...this.targets.map((chart) => chart.element));
    }
    this.place = h("div", { class: "told" }, ...parts);
    const heading = { classes: "Class", numbers: "Prediction", none: "Component" }[about.task];
    this.element = card("says", "What the model says",
      h("div", { class: "halves" },
        h("div", {}, h("h3", {}, heading), this.place),
        h("div", {}, h("h3", {}, "Typicality"), this.gauge.element, this.guilty)));
  }

  show(answer, row, cells) {
    const { probabilities, targets } = answer.prediction;
    if (probabilities) {
      const isClass = this.about.task === "classes";
      this.bars ??= new Bars(isClass ? this.about.classes : probabilities.map((_, k) => `component ${k}`));
      if (!this.bars.element.isConnected) this.place.append(this.bars.element);
      this.bars.show(probabilities, row?.label ?? null);
    } else {
      targets.forEach((target, k) => this.targets[k].show(target, row?.targets?.[k]));
    }
    this.gauge.show(answer.typicality);
    const guilty = guiltyCells(answer, this.about.threshold);
    this.guilty.replaceChildren(...guilty.map((cell) => {
      const { name } = this.about.columns[cell.column];
      const own = cells.get(cell.column);
      return h("li", {}, button(name, () => this.focusCell(cell.column), { class: "link" }),
        ` ${own.text()}, ${own.words(cell)}; without it: ${rarity(answer.typicality + cell.rise)}`);
    }));
    if (answer.typicality < this.about.threshold && guilty.length === 0) {
      this.guilty.replaceChildren(h("li", {}, "No single cell makes it so."));
    }
  }

  /** Say the same in a few words. */
  summary(answer) {
    const { probabilities, targets } = answer.prediction;
    const rare = rarity(answer.typicality);
    if (targets) return `${this.about.targets[0]} ${number(targets[0].mean)} · ${rare}`;
    const best = probabilities.indexOf(Math.max(...probabilities));
    const name = this.about.task === "classes" ? this.about.classes[best] : `component ${best}`;
    return `${name} ${percent(probabilities[best])} · ${rare}`;
  }
}
