// The page of a model of sequences.

import { ask, asking, complain } from "./api.js";
import { button, card, colour, h, labelled, number, options, percent, rarity } from "./dom.js";
import { FrameCells } from "./frames.js";
import { SequenceLists } from "./lists.js";
import { Bars, Gauge } from "./prediction.js";
import { SequenceChart } from "./traces.js";

/** Build the page, and keep its parts in step. */
export async function showSequences(about, main) {
  let row = null;
  let frames = [];
  let fills = [];
  const hidden = new Set();

  const picker = h("input", { type: "number", min: 0, max: about.n_rows - 1, step: 1, class: "short" });
  const name = h("span", { class: "words row-name" });
  const chip = h("span", { class: "chip" });
  const until = h("input", { type: "range", min: 1, step: 1 });
  const untilWords = h("output", { class: "words" });
  const at = h("input", { type: "range", min: 0, step: 1 });
  const atWords = h("output", { class: "words" });
  const states = h("select", { onchange: () => changed() },
    ...options([["", "the most probable class"], ...about.classes.map((name, k) => [String(k), name])], ""));
  const bars = about.task === "classes" ? new Bars(about.classes) : null;
  const gauge = new Gauge(about.threshold, "sequences");
  const chart = new SequenceChart(about, (frame) => {
    at.value = frame;
    moved();
  });
  const cells = new FrameCells(about.columns, (column, value) => {
    frames[Number(at.value)][column] = value;
    changed();
  });
  const summary = h("p", { id: "summary", "aria-live": "polite" });

  // What the model sees: the first frames, without the columns that are hidden.
  const seen = () => frames.slice(0, Number(until.value))
    .map((frame) => frame.map((value, column) => (hidden.has(column) ? null : value)));
  const question = () => ({ frames: seen() });

  const refreshAnswer = asking("answer", () => ({
    ...question(), class: states.value === "" ? null : Number(states.value),
  }), (answer) => {
    fills = answer.fills;
    bars?.show(answer.probabilities, row?.label ?? null);
    chart.show(frames, seen(), answer, Number(at.value));
    cells.show(seen()[Number(at.value)] ?? null, fills[Number(at.value)] ?? null, hidden);
    if (bars) {
      const best = answer.probabilities.indexOf(Math.max(...answer.probabilities));
      summary.textContent = `${about.classes[best]} ${percent(answer.probabilities[best])}`;
    }
  });
  const refreshTypicality = asking("typicality", question, ({ typicality }) => {
    gauge.show(typicality);
    if (!bars) summary.textContent = rarity(typicality);
  });

  function changed() {
    untilWords.textContent = `${until.value} of ${frames.length}`;
    moved();
    return Promise.all([refreshAnswer(), refreshTypicality()]);
  }

  function moved() {
    if (Number(at.value) >= Number(until.value)) at.value = Number(until.value) - 1;
    atWords.textContent = at.value;
    const seenNow = seen();
    chart.point(Number(at.value));
    cells.show(seenNow[Number(at.value)] ?? null, fills[Number(at.value)] ?? null, hidden);
  }

  function load(found, drawn) {
    row = found;
    frames = drawn.map((frame) => [...frame]);
    fills = [];
    const label = found?.label;
    chip.hidden = label === undefined || label === null;
    if (!chip.hidden) {
      chip.className = `chip ${colour(label)}`;
      chip.textContent = `label: ${about.classes[label]}`;
    }
    if (found) picker.value = found.row;
    name.textContent = found && found.name !== picker.value ? found.name : "";
    Object.assign(until, { max: frames.length, value: frames.length });
    Object.assign(at, { max: frames.length - 1, value: 0 });
    return changed();
  }

  async function pick(wanted) {
    try {
      const found = await ask("row", { row: Math.min(Math.max(wanted, 0), about.n_rows - 1) });
      await load(found, found.frames);
    } catch (error) {
      complain(error);
    }
  }

  const current = () => (Number.isInteger(picker.valueAsNumber) ? picker.valueAsNumber : 0);
  picker.addEventListener("change", () => pick(current()));
  until.addEventListener("input", changed);
  at.addEventListener("input", moved);
  const toggles = about.columns.map((column, place) => column.kind !== "unused"
    && h("label", { class: "check" }, h("input", {
      type: "checkbox", checked: true, onchange: (event) => {
        hidden[event.target.checked ? "delete" : "add"](place);
        changed();
      },
    }), ` ${column.name}`));
  const hideFrame = () => {
    frames[Number(at.value)] = frames[Number(at.value)].map(() => null);
    changed();
  };
  const lists = new SequenceLists(about, { pick, use: (drawn) => load(null, drawn) });
  main.append(
    card("row", about.is_drawn ? "A sequence, drawn from the model" : "A sequence of the table",
      h("div", { class: "controls" },
        labelled("Sequence", picker), name,
        button("‹", () => pick(current() - 1), { "aria-label": "Previous sequence" }),
        button("›", () => pick(current() + 1), { "aria-label": "Next sequence" }),
        button("Any", () => pick(Math.floor(Math.random() * about.n_rows)), { title: "A sequence at random" }),
        button("Reset", () => (row ? pick(row.row) : changed())),
        chip),
      h("div", { class: "sliders" },
        labelled("Frames seen", until), untilWords, labelled("Frame", at), atWords),
      h("h3", {}, "Columns that the model sees"),
      h("div", { class: "controls" }, ...toggles),
      h("h3", {}, "The frame"),
      cells.element,
      h("div", { class: "controls" }, button("Hide this frame", hideFrame))),
    h("div", { class: "column" },
      card("says", "What the model says", h("div", { class: "halves" },
        bars && h("div", {}, h("h3", {}, "Class"), bars.element),
        h("div", {}, h("h3", {}, "Typicality"), gauge.element))),
      card("states", "Decoded states",
        bars && h("div", { class: "controls" }, labelled("States of", states)),
        chart.element),
      lists.element),
    summary);
  await pick(0);
  lists.open();
}
