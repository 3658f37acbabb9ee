"use strict";
// Sorting, copying and deep links. Text is only ever read from and moved within the page.
const said = document.getElementById("said");
const original = new WeakMap();

function value(row, column, numeric) {
  const text = row.cells[column].textContent.trim();
  if (!numeric) return text;
  return text === "" ? NaN : parseFloat(text.replace("\u2212", "-"));
}

function compare(a, b, numeric) {
  if (!numeric) return a.localeCompare(b, "en", { numeric: true });
  if (Number.isNaN(a) || Number.isNaN(b)) return 0;
  return a - b;
}

// A table of several bodies keeps each body together and goes by its first row.
function units(table) {
  const bodies = [...table.tBodies];
  return bodies.length > 1
    ? bodies.map((body) => [body, body.rows[0]])
    : [...bodies[0].rows].map((row) => [row, row]);
}

function sortTable(table, column, direction) {
  if (!original.has(table)) original.set(table, units(table));
  const heading = table.tHead.rows[0].cells[column];
  const numeric = heading.classList.contains("n");
  let ordered = [...original.get(table)];
  if (direction !== "none") {
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = ordered.map((unit) => [unit, value(unit[1], column, numeric)]);
    const empty = keyed.filter(([, key]) => Number.isNaN(key));
    const full = keyed.filter(([, key]) => !Number.isNaN(key));
    full.sort(([, a], [, b]) => sign * compare(a, b, numeric));
    ordered = [...full, ...empty].map(([unit]) => unit);
  }
  for (const [moved] of ordered) {
    if (moved.tagName === "TBODY") table.insertBefore(moved, table.tFoot);
    else table.tBodies[0].append(moved);
  }
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  if (direction !== "none") heading.setAttribute("aria-sort", direction);
  const order = direction === "none" ? "original order" : direction + " by " + heading.textContent;
  said.textContent = table.caption.textContent + ": " + order;
}

function nextDirection(heading) {
  const now = heading.getAttribute("aria-sort");
  const first = heading.classList.contains("n") ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  if (now === null) return first;
  return now === first ? second : "none";
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortTable(table, column, nextDirection(heading)));
    heading.append(button);
  });
}

async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (error) { /* the older way below */ }
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function makeCopyable(element, text, label) {
  const tools = document.createElement("div");
  const button = document.createElement("button");
  tools.className = "tools";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy: " + label);
  button.addEventListener("click", async () => {
    const done = await copyText(text());
    said.textContent = (done ? "Copied: " : "Could not copy: ") + label;
    button.textContent = done ? "Copied" : "Failed";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  tools.append(button);
  element.before(tools);
}

// Tab-separated, so that a spreadsheet takes it as it is.
function tableText(table) {
  const clean = (cell) => cell.textContent.trim().replace(/\s+/g, " ");
  return [...table.rows].map((row) => [...row.cells].map(clean).join("\t")).join("\n");
}

// #sort=ledger-0:4:descending opens the page with a table sorted.
function followHash() {
  const match = /^#sort=([\w-]+):(\d+):(ascending|descending)$/.exec(location.hash);
  const table = match && document.getElementById(match[1]);
  if (!table || !table.tHead || +match[2] >= table.tHead.rows[0].cells.length) return;
  const fold = table.closest("details");
  if (fold) fold.open = true;
  sortTable(table, +match[2], match[3]);
  table.scrollIntoView();
}

for (const table of document.querySelectorAll("table.sortable")) {
  makeSortable(table);
  makeCopyable(table.parentElement, () => tableText(table), table.caption.textContent);
}
for (const code of document.querySelectorAll("pre.copyable")) {
  makeCopyable(code, () => code.textContent, code.getAttribute("aria-label"));
}
addEventListener("hashchange", followHash);
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
followHash();
