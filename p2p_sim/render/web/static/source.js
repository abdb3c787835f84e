"use strict";
// Where answers come from: the server that this page came from, or the page itself, if it was exported.

const held = document.getElementById("data");
const inside = held ? JSON.parse(held.textContent) : null;

let waiting = 0;

/** Ask for one thing; `asked` holds texts, empty ones are left out. Throws an Error with the server's words. */
async function ask(what, asked) {
  busy(1);
  try { return inside ? fromInside(what, asked) : await fromServer(what, asked); }
  finally { busy(-1); }
}

function busy(step) {
  waiting += step;
  document.querySelector("main").setAttribute("aria-busy", String(waiting > 0));
}

async function fromServer(what, asked) {
  const given = Object.entries(asked).filter(([, value]) => value !== "");
  let answer;
  try { answer = await fetch("api/" + what + "?" + new URLSearchParams(given)); }
  catch { throw new Error("the server does not answer: is p2p-sim trace serve still running?"); }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || "the server answered " + answer.status);
  return found;
}

function fromInside(what, asked) {
  if (what === "runs") return { runs: [""] };
  if (what === "overview") return inside.overview;
  const key = asked.view + "|" + asked.channels, sight = inside.sights[key];
  if (what === "figures") return inside.figures[key] || { view: asked.view, rows: [], note: "this file holds no such figures" };
  const { kinds, rounds } = inside.overview;
  const held = {
    user: asked.user === String(inside.user ?? ""), kind: !asked.kind || asked.kind in kinds, view: !asked.view || sight,
    round: !asked.round || rounds.some((row) => String(row.round) === asked.round), cluster: !asked.cluster, offset: asked.offset === "0",
  };
  for (const name of Object.keys(held)) if (!held[name]) throw new Error(`${name} ${asked[name]}: not in this file`);
  const messages = inside.lanes.messages
    .map((m, i) => (sight ? { ...m, seen: sight.seen[i] === "1", readable: sight.readable[i] === "1" } : m))
    .filter((m) => (!asked.kind || m.kind === asked.kind) && (!asked.round || m.round === Number(asked.round)));
  return { ...inside.lanes, messages, total: messages.length };
}

/** Make an element; `text` is put in as text, never as HTML. */
function make(name, attributes = {}, text = "", parent = null) {
  return put(document.createElement(name), attributes, text, parent);
}

/** Make an SVG element. */
function draw(name, attributes, parent, text = "") {
  return put(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, text, parent);
}

function put(element, attributes, text, parent) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = straight(text);
  if (parent) parent.appendChild(element);
  return element;
}

/** Show marks, as Python does, for what would turn the direction of the text around it: it comes from files. */
function straight(text) {
  return String(text).replace(/[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

const by = (id) => document.getElementById(id);
const whole = (number) => Number(number).toLocaleString("en");

function bytes(number) {
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (number < 1000 || unit === "TB") return (unit === "B" ? whole(number) : number.toFixed(1)) + " " + unit;
    number /= 1000;
  }
}
