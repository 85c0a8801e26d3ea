// The cells of a row: to be typed, moved, hidden, and compared with what is expected.

import { area } from "./charts.js";
import { breakable, button, h, number, numbers, percent, svg, typed } from "./dom.js";

const WIDTH = 200;
const HEIGHT = 32;

function eye() {
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: "M2 12s3.6-6.5 10-6.5S22 12 22 12s-3.6 6.5-10 6.5S2 12 2 12z" }),
    svg("circle", { cx: 12, cy: 12, r: 3 }), svg("path", { class: "bar", d: "M4 20L20 4" }));
}

/** What all cells have: a name, a button to hide them, and what the model expects. */
class Cell {
  constructor(place, column, changed) {
    this.place = place;
    this.column = column;
    this.changed = changed;
    this.value = null;
    this.last = null;
    this.fill = null;
    this.toggle = button("", () => this.flip(), { class: "eye" });
    this.toggle.append(eye());
    this.strip = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
    });
    this.said = h("span", { class: "said", id: `said-${place}` });
    this.pull = h("span", { class: "pull", "aria-hidden": "true" }, h("span"));
  }

  assemble(input, strip) {
    this.input = input;
    input.id = `cell-${this.place}`;
    input.setAttribute("aria-describedby", this.said.id);
    this.element = h("div", { class: "cell" },
      this.toggle,
      h("label", { class: "name", for: input.id, title: this.column.name }, ...breakable(this.column.name)),
      input, strip, this.said, this.pull);
  }

  /** Set the value, without telling anyone. */
  set(value) {
    if (value !== null) this.last = value;
    this.value = value;
    const isHidden = value === null;
    this.element.classList.toggle("hidden", isHidden);
    this.toggle.setAttribute("aria-pressed", String(isHidden));
    const word = isHidden ? "Show" : "Hide";
    this.toggle.setAttribute("aria-label", `${word} ${this.column.name}`);
    this.toggle.title = `${word} this cell`;
    this.write();
  }

  change(value) {
    this.set(value);
    this.changed();
  }

  flip() {
    this.change(this.value === null ? this.last ?? this.fill : null);
  }

  /** Show what the model says about the cell. */
  show(answer, isGuilty, className) {
    this.fill = answer.fill;
    this.element.classList.toggle("guilty", isGuilty);
    this.draw(answer);
    this.said.textContent = this.words(answer);
    const pull = answer.pull ?? 0;
    const bar = this.pull.firstChild;
    bar.style.width = `${Math.min(Math.abs(pull) / 3, 1) * 50}%`;
    bar.className = pull < 0 ? "against" : `for ${className}`;
    this.pull.title = `${pull < 0 ? "speaks against" : "speaks for"} the predicted class: ` +
      `${number(pull)} in log odds`;
    this.write();
  }
}

class RealCell extends Cell {
  constructor(place, column, changed) {
    super(place, column, changed);
    const input = h("input", { type: "number", step: "any", inputmode: "decimal" });
    const read = () => {
      // While "1e" or "-" is typed, there is no number yet.
      if (input.validity.badInput) return;
      const value = input.value === "" ? null : Number(input.value);
      if (value !== this.value) this.change(value);
    };
    input.addEventListener("input", read);
    input.addEventListener("change", read);
    const step = column.whole ? 1 : (column.high - column.low) / 200;
    this.slider = h("input", {
      type: "range", min: column.low, max: column.high, step,
      "aria-label": `${column.name}, slider`,
    });
    this.slider.addEventListener("input", () => this.change(Number(typed(Number(this.slider.value)))));
    this.assemble(input, h("span", { class: "strip" }, this.strip, this.slider));
  }

  write() {
    if (document.activeElement !== this.input) this.input.value = typed(this.value);
    this.input.placeholder = this.fill === null ? "" : number(this.fill);
    this.slider.value = this.value ?? this.fill ?? (this.column.low + this.column.high) / 2;
    this.slider.setAttribute("aria-valuetext",
      this.value === null ? `hidden, expected ${number(this.fill)}` : number(this.value));
  }

  /** Write the value. */
  text() {
    return number(this.value);
  }

  x(value) {
    const { low, high } = this.column;
    return (Math.min(Math.max((value - low) / (high - low || 1), 0), 1)) * WIDTH;
  }

  draw(answer) {
    const most = Math.max(...answer.density, 1e-300);
    const last = answer.density.length - 1;
    const xs = answer.density.map((_, k) => (k / last) * WIDTH);
    const ys = answer.density.map((value) => HEIGHT - 3 - (value / most) * (HEIGHT - 6));
    const band = { x: this.x(answer.low), width: Math.max(this.x(answer.high) - this.x(answer.low), 1) };
    this.strip.replaceChildren(
      svg("path", { class: "curve", d: area(xs, ys, HEIGHT - 3) }),
      svg("rect", { class: "band", ...band, y: HEIGHT - 3, height: 3 }),
      ...answer.spikes.filter(([, mass]) => mass > 0.005).map(([value, mass]) =>
        svg("rect", { class: "spike", x: this.x(value) - 1.5, width: 3,
          y: (1 - mass) * (HEIGHT - 6), height: mass * (HEIGHT - 6) + 3 })),
    );
  }

  words(answer) {
    const [fill, low, high] = numbers([answer.fill, answer.low, answer.high]);
    const between = answer.low < 0 ? " to " : "–";
    return `expected ${fill} (${low}${between}${high})`;
  }
}

class CategoryCell extends Cell {
  constructor(place, column, changed) {
    super(place, column, changed);
    const input = h("select", {},
      h("option", { value: "" }, "hidden"),
      ...column.categories.map((name, code) => h("option", { value: code }, name)));
    input.addEventListener("change", () =>
      this.change(input.value === "" ? null : Number(input.value)));
    this.assemble(input, h("span", { class: "strip" }, this.strip));
  }

  write() {
    this.input.value = this.value === null ? "" : String(this.value);
  }

  text() {
    return this.column.categories[this.value] ?? "hidden";
  }

  draw(answer) {
    const width = WIDTH / answer.probabilities.length;
    const room = Math.min(width * 0.15, 3);
    this.strip.replaceChildren(...answer.probabilities.map((share, code) =>
      svg("rect", {
        class: code === this.value ? "curve chosen" : "curve",
        x: code * width + room, width: width - 2 * room,
        y: (1 - share) * (HEIGHT - 3), height: share * (HEIGHT - 3) + 2,
      })));
  }

  words(answer) {
    const name = this.column.categories[answer.fill];
    return `expected ${name} (${percent(answer.probabilities[answer.fill])})`;
  }
}

/** Make the cells of the columns that are shown, by their position. */
export function makeCells({ columns, shown }, changed) {
  return new Map(shown.map((place) => {
    const Kind = columns[place].kind === "real" ? RealCell : CategoryCell;
    return [place, new Kind(place, columns[place], changed)];
  }));
}
