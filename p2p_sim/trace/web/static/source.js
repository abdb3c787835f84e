"use strict";
// Where answers come from: the server that this page came from, or the page itself, if it was exported.

const held = document.getElementById("data");
const inside = held ? JSON.parse(held.textContent) : null;

/** Ask for one thing; `asked` holds texts, empty ones are left out. Throws an Error with the server's words. */
async function ask(what, asked) {
  if (inside) return fromInside(what, asked);
  const given = Object.entries(asked).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const answer = await fetch("api/" + what + "?" + new URLSearchParams(given));
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error || "the server answered " + answer.status);
  return told;
}

function fromInside(what, asked) {
  if (what === "runs") return { runs: [""] };
  if (what === "overview") return inside.overview;
  if (what === "figures") return inside.figures[asked.view] || { rows: [], note: "" };
  const whole = inside.lanes[asked.view || ""];
  const messages = whole.messages.filter(
    (m) => (!asked.kind || m.kind === asked.kind) && (!asked.round || m.round === Number(asked.round))
  );
  return { ...whole, messages, total: messages.length };
}

/** Make an element; `text` is put in as text, never as HTML. */
function make(name, attributes = {}, text = "", parent = null) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

/** Make an SVG element. */
function draw(name, attributes, parent, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  parent.appendChild(element);
  return element;
}

const whole = (number) => Number(number).toLocaleString("en");

function bytes(number) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (number < 1000 || unit === "GB") return (unit === "B" ? whole(number) : number.toFixed(1)) + " " + unit;
    number /= 1000;
  }
}
