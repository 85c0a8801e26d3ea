// A sequence over time: its columns, and the states behind them.

import { line, scale, whenResized, xAxis } from "./charts.js";
import { colour, h, number, percent, svg } from "./dom.js";

const LEFT = 74;
const RIGHT = 12;
const PANEL = 86;
const GAP = 12;
const STATE = 18;
const MOST_PANELS = 12;

/** Return runs of equal states: where each begins, where it ends, and which it is. */
function runs(path) {
  const found = [];
  path.forEach((state, frame) => {
    const last = found[found.length - 1];
    if (last && last.state === state) last.end = frame + 1;
    else found.push({ state, start: frame, end: frame + 1 });
  });
  return found;
}

export class SequenceChart {
  constructor(about, pick) {
    this.about = about;
    this.pick = pick;
    this.box = h("div", { class: "chart", onclick: (event) => this.click(event) });
    this.words = h("p", { class: "words" });
    this.element = h("figure", {}, this.box, this.words);
    this.panels = about.columns.map((column, place) => ({ ...column, place }))
      .filter((column) => column.kind !== "unused").slice(0, MOST_PANELS);
    whenResized(this.box, () => this.draw());
  }

  show(frames, seen, answer, frame) {
    Object.assign(this, { frames, seen, answer, frame });
    this.draw();
  }

  point(frame) {
    this.frame = frame;
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.answer || !width) return;
    const { path, states } = this.answer;
    const top = GAP + this.panels.length * (PANEL + GAP);
    const floor = top + states.length * STATE;
    const height = floor + 46;
    const x = scale([0, this.frames.length], [LEFT, width - RIGHT]);
    this.x = x;
    const picture = svg("svg", { width, height, role: "img", "aria-label": this.title() });
    for (const { state, start, end } of runs(path)) {
      picture.append(svg("rect", {
        class: `behind ${colour(state)}`, x: x(start), width: x(end) - x(start), y: GAP, height: top - 2 * GAP,
      }, svg("title", {}, `state ${state}: frames ${start} to ${end - 1}`)));
    }
    this.panels.forEach((column, k) => this.drawColumn(picture, column, GAP + k * (PANEL + GAP), width));
    this.drawStates(picture, top);
    picture.append(xAxis(x, floor, "frame"));
    const here = x(this.frame + 0.5);
    picture.append(svg("path", { class: "here", d: `M${here} ${GAP}V${floor}` }));
    this.box.replaceChildren(picture);
    const shown = this.about.task === "classes" ? ` of ${this.about.classes[this.answer.class]}` : "";
    this.words.textContent = `Behind the columns and in the last rows: the states${shown}; the darker a cell, the ` +
      "more probable the state. Dashes: what the model expects where it sees nothing. Click to choose a frame.";
  }

  title() {
    const found = runs(this.answer.path).map(({ state, start, end }) => `${state} (${start} to ${end - 1})`);
    return `Most probable states: ${found.join(", ")}`;
  }

  drawColumn(picture, column, top, width) {
    const isReal = column.kind === "real";
    const domain = isReal ? [column.low, column.high] : [-0.5, column.categories.length - 0.5];
    const y = scale(domain, [top + PANEL - 4, top + 4]);
    const group = svg("g", { class: "axis" },
      svg("path", { class: "grid", d: `M${LEFT} ${top + PANEL}H${width - RIGHT}` }),
      svg("text", { x: 2, y: top + 14, class: "name" }, column.name.slice(0, 10), svg("title", {}, column.name)));
    if (isReal) {
      group.append(svg("text", { x: LEFT - 6, y: top + PANEL - 2, class: "end" }, number(column.low, 2)),
        svg("text", { x: LEFT - 6, y: top + 28, class: "end" }, number(column.high, 2)));
    }
    picture.append(group);
    const given = this.frames.map((frame) => frame[column.place]);
    picture.append(svg("path", { class: "trace unseen", d: this.path(given, y) }),
      svg("path", { class: "trace filled", d: this.path(this.answer.fills.map((frame) => frame[column.place]), y) }),
      svg("path", { class: "trace", d: this.path(this.seen.map((frame) => frame[column.place]), y) }));
  }

  /** Return the path of values, interrupted where there is none. */
  path(values, y) {
    const parts = [];
    let run = [];
    const finish = () => {
      if (run.length === 1) parts.push(`M${this.x(run[0] + 0.35)} ${y(values[run[0]])}H${this.x(run[0] + 0.65)}`);
      else if (run.length) parts.push(line(run.map((k) => this.x(k + 0.5)), run.map((k) => y(values[k]))));
      run = [];
    };
    values.forEach((value, k) => {
      if (value === null) finish();
      else run.push(k);
    });
    finish();
    return parts.join("");
  }

  drawStates(picture, top) {
    const { path, states } = this.answer;
    states.forEach((shares, state) => {
      const y = top + state * STATE;
      picture.append(svg("text", { x: LEFT - 6, y: y + 13, class: "end name" }, `state ${state}`));
      shares.forEach((share, frame) => {
        if (share < 0.01) return;
        const cell = svg("rect", {
          class: `probability ${colour(state)}`, "fill-opacity": Math.round(90 * share) / 100,
          x: this.x(frame), width: this.x(frame + 1) - this.x(frame), y: y + 1, height: STATE - 2,
        }, svg("title", {}, `frame ${frame}: state ${state} with ${percent(share)}`));
        picture.append(cell);
      });
    });
    const steps = path.map((state, frame) => {
      const y = top + (state + 0.5) * STATE;
      return `${frame ? "L" : "M"}${this.x(frame)} ${y}L${this.x(frame + 1)} ${y}`;
    });
    picture.append(svg("path", { class: "way", d: steps.join("") }));
  }

  click(event) {
    const place = this.x?.inverse(event.clientX - this.box.getBoundingClientRect().left);
    if (place >= 0 && place < this.seen.length) this.pick(Math.floor(place));
  }
}
