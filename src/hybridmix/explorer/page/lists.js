// Rows to click through: unusual ones, and samples.

import { ask, complain } from "./api.js";
import { button, card, colour, h, number, rarity } from "./dom.js";

const N_SAMPLES = 8;
// Columns of a sample that are shown before the table scrolls.
const MOST_COLUMNS = 30;

function labelChip(about, label) {
  return label === undefined || label === null ? "–"
    : h("span", { class: `chip ${colour(label)}` }, about.classes[label]);
}

/** Tabs that arrows move between, as keyboards expect of tabs. */
function tabs(panels) {
  const list = h("div", { role: "tablist", class: "tabs" });
  const made = panels.map(({ id, name, panel, opened }) => {
    const tab = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` }, name);
    Object.assign(panel, { id: `panel-${id}`, tabIndex: 0 });
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    list.append(tab);
    return { tab, panel, opened };
  });
  const open = (chosen) => made.forEach(({ tab, panel, opened }, k) => {
    const isOpen = k === chosen;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    panel.hidden = !isOpen;
    if (isOpen) opened();
  });
  made.forEach(({ tab }, k) => {
    tab.addEventListener("click", () => open(k));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (k + step + made.length) % made.length;
      open(next);
      made[next].tab.focus();
    });
  });
  return { list, panels: made.map(({ panel }) => panel), open };
}

/** The card of unusual rows and samples. */
export class Lists {
  constructor(about, { cells, pick, use }) {
    Object.assign(this, { about, cells, pick, use, seed: 0, isRead: false });
    this.unusual = h("div", {});
    this.samples = h("div", {});
    this.keep = h("input", { type: "checkbox", onchange: () => this.draw() });
    this.drawn = h("div", { class: "scroll", tabindex: 0 });
    this.samples.append(
      h("div", { class: "controls" },
        button("Draw again", () => this.draw()),
        h("label", { class: "check" }, this.keep, " keep the visible cells")),
      this.drawn);
    const both = [
      { id: "unusual", name: "Unusual rows", panel: this.unusual, opened: () => this.readUnusual() },
      { id: "samples", name: "Samples", panel: this.samples, opened: () => this.draw() },
    ];
    const shown = tabs(about.is_drawn ? both.slice(1) : both);
    this.element = card("lists", "More rows", shown.list, ...shown.panels);
    this.open = () => shown.open(0);
  }

  async readUnusual() {
    if (this.isRead) return;
    this.isRead = true;
    this.unusual.textContent = "Looking at all rows …";
    try {
      this.showUnusual(await ask("unusual"));
    } catch (error) {
      complain(error);
    }
  }

  showUnusual({ rows, n_flagged: flagged, n_scored: scored }) {
    const withLabel = this.about.has_labels;
    const lines = rows.map((row) => h("tr", {},
      h("th", { scope: "row" }, button(`row ${row.name}`, () => this.pick(row.row), { class: "link" })),
      h("td", { class: row.typicality < this.about.threshold ? "rare" : "" }, rarity(row.typicality)),
      withLabel && h("td", {}, row.targets ? row.targets.map((value) => number(value)).join(", ") : labelChip(this.about, row.label)),
      h("td", {}, row.guilty === null ? "–" : this.about.columns[row.guilty].name)));
    const names = ["row", "as unusual", withLabel && (this.about.task === "numbers" ? "target" : "label"), "most to blame"];
    this.unusual.replaceChildren(
      h("p", { class: "words" }, `${flagged.toLocaleString("en")} of ${scored.toLocaleString("en")} rows are unusual.`),
      h("div", { class: "scroll tall", tabindex: 0 }, h("table", {},
        h("thead", {}, h("tr", {}, ...names.filter(Boolean).map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...lines))));
  }

  async draw() {
    const shown = this.cells();
    const cells = this.keep.checked ? shown : shown.map(() => null);
    try {
      this.showSamples(await ask("sample", { n: N_SAMPLES, seed: this.seed++, cells }));
    } catch (error) {
      complain(error);
    }
  }

  showSamples({ rows, labels, targets }) {
    const columns = this.about.columns.map((column, place) => ({ ...column, place }))
      .filter((column) => column.kind !== "unused").slice(0, MOST_COLUMNS);
    const lines = rows.map((row, k) => h("tr", {},
      h("th", { scope: "row" }, button("use", () => this.use(row.cells), { class: "link", "aria-label": `use sample ${k + 1}` })),
      labels && h("td", {}, labelChip(this.about, labels[k])),
      targets && h("td", { class: "number" }, targets[k].map((value) => number(value)).join(", ")),
      ...columns.map(({ kind, categories, place }) => kind === "real"
        ? h("td", { class: "number" }, number(row.cells[place]))
        : h("td", {}, categories[row.cells[place]]))));
    const heads = [h("th", { scope: "col" }, ""), labels && h("th", { scope: "col" }, "class"),
      targets && h("th", { scope: "col", class: "number" }, "expected"),
      ...columns.map(({ name, kind }) => h("th", { scope: "col", class: kind === "real" && "number" }, name))];
    this.drawn.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...lines)));
  }
}

/** The card of improbable sequences and samples. */
export class SequenceLists {
  constructor(about, { pick, use }) {
    Object.assign(this, { about, pick, use, seed: 0, isRead: false });
    this.unusual = h("div", {});
    this.samples = h("div", {});
    const both = [
      { id: "unusual", name: "Improbable sequences", panel: this.unusual, opened: () => this.readUnusual() },
      { id: "samples", name: "Samples", panel: this.samples, opened: () => this.draw() },
    ];
    const shown = tabs(about.is_drawn ? both.slice(1) : both);
    this.element = card("lists", "More sequences", shown.list, ...shown.panels);
    this.open = () => shown.open(0);
  }

  async readUnusual() {
    if (this.isRead) return;
    this.isRead = true;
    this.unusual.textContent = "Looking at all sequences …";
    try {
      const { rows } = await ask("unusual");
      this.unusual.replaceChildren(this.table(["sequence", "log density per frame", "label"], rows.map((row) => [
        button(`sequence ${row.name}`, () => this.pick(row.row), { class: "link" }),
        number(row.log_density), labelChip(this.about, row.label)])));
    } catch (error) {
      complain(error);
    }
  }

  async draw() {
    try {
      const { rows, labels } = await ask("sample", { n: N_SAMPLES, seed: this.seed++ });
      this.samples.replaceChildren(
        h("div", { class: "controls" }, button("Draw again", () => this.draw())),
        this.table(["sample", "frames", "class"], rows.map(({ frames }, k) => [
          button("use", () => this.use(frames), { class: "link", "aria-label": `use sample ${k + 1}` }),
          String(frames.length), labelChip(this.about, labels?.[k])])));
    } catch (error) {
      complain(error);
    }
  }

  table(names, lines) {
    const isClassifier = this.about.task === "classes";
    const kept = isClassifier ? names.length : names.length - 1;
    return h("div", { class: "scroll tall", tabindex: 0 }, h("table", {},
      h("thead", {}, h("tr", {}, ...names.slice(0, kept).map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...lines.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first),
        ...rest.slice(0, kept - 1).map((cell) => h("td", {}, cell)))))));
  }
}
