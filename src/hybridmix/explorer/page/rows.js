// The page of a model of rows.

import { ask, asking, complain } from "./api.js";
import { makeCells } from "./cells.js";
import { Densities } from "./density.js";
import { button, card, colour, h, labelled } from "./dom.js";
import { Lists } from "./lists.js";
import { TradeoffSlider } from "./path.js";
import { Prediction, guiltyCells } from "./prediction.js";

/** Build the page, and keep its parts in step. */
export async function showRows(about, main) {
  let row = null;
  // Columns that are not shown keep the values of the row.
  let others = about.columns.map(() => null);
  const cells = makeCells(about, () => changed());
  const values = () => others.map((value, place) => (cells.has(place) ? cells.get(place).value : value));

  const first = about.first_row;
  const picker = h("input", { type: "number", min: first, max: first + about.n_rows - 1, step: 1, class: "short" });
  const name = h("span", { class: "words row-name" });
  const chip = h("span", { class: "chip" });
  const prediction = new Prediction(about, (column) => {
    cells.get(column).input.focus();
    cells.get(column).element.scrollIntoView({ block: "nearest" });
  });
  const densities = new Densities(about, () => refreshDensity(), (moved) => {
    for (const [column, value] of Object.entries(moved)) {
      if (cells.has(Number(column))) cells.get(Number(column)).set(value);
      else others[column] = value;
    }
    changed();
  });
  const lists = new Lists(about, { cells: values, pick, use: (drawn) => load(null, drawn) });
  const path = new TradeoffSlider(() => {
    refreshAnswer();
    refreshDensity();
  });
  if (about.has_path) prediction.element.append(path.element);
  const summary = h("p", { id: "summary", "aria-live": "polite" });

  const refreshAnswer = asking("answer", () => ({ cells: values(), station: path.station }), (answer) => {
    const guilty = new Set(guiltyCells(answer, about.threshold).map((cell) => cell.column));
    const best = answer.prediction.probabilities;
    const className = best ? colour(best.indexOf(Math.max(...best))) : "s0";
    for (const cell of answer.cells) {
      cells.get(cell.column).show(cell, guilty.has(cell.column), className);
    }
    prediction.show(answer, row, cells);
    summary.textContent = prediction.summary(answer);
  });
  const refreshDensity = asking("density", () => ({ ...densities.question(), station: path.station }), (answer) => densities.show(answer));

  function changed() {
    densities.mark(values());
    return refreshAnswer();
  }

  function load(found, drawn) {
    row = found;
    const label = found?.label;
    chip.hidden = label === undefined || label === null;
    if (!chip.hidden) {
      chip.className = `chip ${colour(label)}`;
      chip.textContent = `label: ${about.classes[label]}`;
    }
    if (found) picker.value = first + found.row;
    name.textContent = found && found.name !== picker.value ? found.name : "";
    others = [...drawn];
    for (const [place, cell] of cells) cell.set(drawn[place]);
    return changed();
  }

  async function pick(number) {
    try {
      const wanted = Math.min(Math.max(number, 0), about.n_rows - 1);
      const found = await ask("row", { row: wanted });
      await load(found, found.cells);
    } catch (error) {
      complain(error);
    }
  }

  const nUsed = about.columns.filter((column) => column.kind !== "unused").length;
  const current = () => (Number.isInteger(picker.valueAsNumber) ? picker.valueAsNumber - first : 0);
  picker.addEventListener("change", () => pick(current()));
  const hide = () => null;
  const setAll = (value) => {
    if (value === hide) others = others.map(() => null);
    for (const cell of cells.values()) cell.set(value(cell));
    changed();
  };
  main.append(
    card("row", about.is_drawn ? "A row, drawn from the model" : "A row of the table",
      h("div", { class: "controls" },
        labelled("Row", picker), name,
        button("‹", () => pick(current() - 1), { "aria-label": "Previous row" }),
        button("›", () => pick(current() + 1), { "aria-label": "Next row" }),
        button("Any", () => pick(Math.floor(Math.random() * about.n_rows)), { title: "A row at random" }),
        button("Hide all", () => setAll(hide)),
        button("Reset", () => (row ? pick(row.row) : setAll((cell) => cell.last ?? cell.fill))),
        chip),
      h("p", { class: "words" }, about.task === "classes"
        ? "Curves: what the model expects, given the other cells. Bars at the right: whether a cell speaks for the predicted class or against it."
        : "Curves: what the model expects, given the other cells."),
      nUsed > about.shown.length && h("p", { class: "words" },
        `The first ${about.shown.length} of ${nUsed} columns are shown; the others keep the values of the row.`),
      h("div", { class: "cells" }, ...Array.from(cells.values(), (cell) => cell.element))),
    h("div", { class: "column" }, prediction.element, densities.element, lists.element),
    summary);
  main.className = about.task === "classes" ? "with-pulls" : "";

  densities.choose(about.suggested.length ? about.suggested : about.shown.slice(0, 1));
  await pick(0);
  await refreshDensity();
  lists.open();
}
