// The slider along the tradeoff path.

import { ask, complain } from "./api.js";
import { button, h, number } from "./dom.js";

const PAUSE = 400;

/** Trains the path when asked to, and then chooses the station that answers. */
export class TradeoffSlider {
  constructor(changed) {
    this.changed = changed;
    this.station = null;
    this.words = h("p", { class: "words", "aria-live": "polite" },
      "See the same model from likelihood to discrimination: it is trained on these rows " +
      "for six tradeoffs.");
    this.start = button("Train along tradeoffs", () => this.train());
    this.element = h("div", { class: "path" }, h("h3", {}, "Tradeoff"),
      h("div", {}, this.start), this.words);
  }

  async train() {
    this.start.disabled = true;
    try {
      let status = await ask("train");
      while (status.is_busy) {
        this.words.textContent = `Training: ${status.n_done} of ${status.tradeoffs.length} …`;
        await new Promise((resume) => setTimeout(resume, PAUSE));
        status = await ask("status");
      }
      if (status.problem) throw new Error(status.problem);
      this.show(status.tradeoffs);
    } catch (error) {
      complain(error);
      this.start.disabled = false;
    }
  }

  show(tradeoffs) {
    this.tradeoffs = tradeoffs;
    this.slider = h("input", {
      type: "range", min: 0, max: tradeoffs.length, step: 1, value: 0, id: "tradeoff",
      "aria-label": "Tradeoff", oninput: () => this.move(),
    });
    this.start.parentElement.replaceWith(this.slider, h("div", { class: "ends", "aria-hidden": "true" },
      h("span", {}, "fitted"), ...tradeoffs.map((value) => h("span", {}, number(value)))));
    this.write();
    this.slider.focus();
  }

  move() {
    const place = Number(this.slider.value);
    this.station = place === 0 ? null : place - 1;
    this.write();
    this.changed();
  }

  write() {
    const text = this.station === null
      ? "The model as it was fitted answers. To the right: tradeoffs, from the likelihood alone (0) to classes kept apart (100)."
      : `A single mixture per class answers, with tradeoff ${number(this.tradeoffs[this.station])}.`;
    this.words.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }
}
