// Reads what the model is about, and builds the page for it.

import { ask, complain } from "./api.js";
import { showRows } from "./rows.js";
import { showSequences } from "./sequences.js";

function aboutText(about) {
  const used = about.columns.filter((column) => column.kind !== "unused").length;
  const unit = about.sequential ? "sequence" : "row";
  const parts = [`It ${about.purpose}`, `${used} columns`];
  if (about.task === "classes") parts.push(`${about.classes.length} classes`);
  const rows = about.n_rows.toLocaleString("en");
  parts.push(about.is_drawn ? `no table: ${rows} ${unit}s drawn from the model` : `${rows} ${unit}s`);
  return `${parts.join(" · ")}.`;
}

async function start() {
  const main = document.getElementById("main");
  try {
    const about = await ask("describe");
    document.getElementById("title").textContent = about.title;
    document.title = `${about.title} · hybridmix explorer`;
    document.getElementById("about").textContent = aboutText(about);
    await (about.sequential ? showSequences : showRows)(about, main);
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    complain(error);
  }
}

start();
