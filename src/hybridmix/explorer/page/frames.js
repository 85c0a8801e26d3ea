// The cells of one frame of a sequence.

import { button, h, number, typed } from "./dom.js";

/** Inputs for all columns of a frame; empty ones are hidden from the model. */
export class FrameCells {
  constructor(columns, changed) {
    this.columns = columns;
    this.inputs = new Map();
    this.element = h("div", { class: "frame" });
    columns.forEach((column, place) => {
      if (column.kind === "unused") return;
      const input = column.kind === "real" ? this.realInput(place, changed)
        : this.categoryInput(place, column, changed);
      input.id = `cell-${place}`;
      this.inputs.set(place, input);
      this.element.append(h("label", { for: input.id }, column.name), input,
        button("hide", () => changed(place, null), {
          class: "link", "aria-label": `Hide ${column.name} in this frame`,
        }));
    });
  }

  realInput(place, changed) {
    const input = h("input", { type: "number", step: "any", inputmode: "decimal" });
    input.addEventListener("input", () => {
      if (!input.validity.badInput) changed(place, input.value === "" ? null : Number(input.value));
    });
    return input;
  }

  categoryInput(place, column, changed) {
    const input = h("select", {}, h("option", { value: "" }, "hidden"),
      ...column.categories.map((name, code) => h("option", { value: code }, name)));
    input.addEventListener("change", () => changed(place, input.value === "" ? null : Number(input.value)));
    return input;
  }

  /** Show a frame, and what the model expects where it has no value. */
  show(frame, fill, hidden) {
    for (const [place, input] of this.inputs) {
      const value = frame?.[place] ?? null;
      const isReal = this.columns[place].kind === "real";
      input.disabled = hidden.has(place) || frame === null;
      if (document.activeElement !== input) {
        input.value = isReal ? typed(value) : value === null ? "" : String(value);
      }
      if (isReal) input.placeholder = fill ? number(fill[place]) : "";
    }
  }
}
