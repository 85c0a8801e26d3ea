// Elements of the page, and how numbers and words are written on it.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make an element; text of tables and models is only ever text, never markup. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an element of a picture. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Write a number with about four digits, or fewer. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const short = size !== 0 && (size < 1e-4 || size >= 1e7)
    ? value.toExponential(digits - 2)
    : String(Number(value.toPrecision(digits)));
  return short.replace("-", "−");
}

/** Write numbers with as many digits as tell them from each other, but at least three. */
export function numbers(values) {
  const size = Math.max(...values.map(Math.abs));
  const distance = Math.max(...values) - Math.min(...values);
  const digits = distance > 0 ? Math.ceil(Math.log10(size / distance)) + 2 : 3;
  return values.map((value) => number(value, Math.min(Math.max(digits, 3), 12)));
}

/** Return a name that may be broken where its words end. */
export function breakable(name) {
  return name.split(/(?<=[_.])/).flatMap((part, k) => (k ? [h("wbr"), part] : [part]));
}

/** Write a number as an input holds it. */
export function typed(value) {
  return value === null ? "" : String(Number(value.toPrecision(6)));
}

export function percent(share) {
  const value = 100 * share;
  if (value === 0) return "0 %";
  if (value > 99.95 && share < 1) return "> 99.9 %";
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** Write how many rows are as unusual as one of this typicality. */
export function rarity(typicality) {
  const share = Math.exp(typicality);
  if (share >= 0.1) return `${Math.round(100 * share)} in 100`;
  const rows = 1 / share;
  if (rows > 1e6) return "less than 1 in a million";
  const rounded = Number(rows.toPrecision(rows < 100 ? 1 + (rows >= 10) : 2));
  return `1 in ${rounded.toLocaleString("en")}`;
}

/** Return the class of the colour of a class or component. */
export const colour = (place) => `s${place % 6}`;

/** Make a card with a heading. */
export function card(id, title, ...children) {
  return h("section", { id, class: "card", "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), ...children);
}

export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

let counted = 0;
/** Make a control with its label. */
export function labelled(text, control) {
  control.id ||= `control-${counted++}`;
  return h("span", { class: "field" }, h("label", { for: control.id }, text), control);
}

export function options(names, chosen) {
  return names.map(([value, name]) => h("option", { value, selected: value === chosen }, name));
}
