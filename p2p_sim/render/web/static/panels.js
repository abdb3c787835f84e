"use strict";
// What stands around the picture: the overview, the chosen message, and what the viewpoint learns.

function setting(about, clusters) {
  document.title = about.protocol + ": " + about.name + " – p2p-sim";
  by("title").textContent = about.protocol + ": " + about.name;
  const parts = Object.entries(about.parameters).map(([name, value]) => name + " = " + value);
  parts.push("seed " + (about.seed ?? (about.cut ? "not known" : "withheld")), (about.users === null ? "?" : whole(about.users)) + " users", "trace " + about.trace);
  if (about.crypto === "real") parts.push("real cryptography, keys from the seed");
  if (about.faults.length) parts.push("faults " + about.faults.join(", "));
  if (clusters) {
    const { count, least, most } = clusters;
    parts.push(whole(count) + " clusters of " + whole(least) + (most > least ? " to " + whole(most) : "") + " users");
  }
  if (about.digest) parts.push("digest " + about.digest);
  by("setting").replaceChildren();
  parts.forEach((part, i) => {
    if (i) by("setting").append(" · ");
    make("span", {}, part, by("setting"));
  });
  by("holds").textContent = inside ? inside.holds + " " + inside.lacks : "";
  by("holds").hidden = !inside;
  by("cut").textContent = about.cut;
  by("cut").hidden = !about.cut;
}

/** Fill a table; `foot`: cells of a last line, if there is one. */
function rows(table, head, lines, foot = null) {
  table.replaceChildren();
  const top = make("tr", {}, "", make("thead", {}, "", table));
  for (const [title, number] of head) make("th", { scope: "col", class: number ? "number" : "" }, title, top);
  const body = make("tbody", {}, "", table);
  for (const line of lines) {
    const row = make("tr", {}, "", body);
    line.cells.forEach((cell, i) => make(i ? "td" : "th", { class: head[i][1] ? "number" : "", ...(i ? {} : { scope: "row" }) }, "", row).append(...[cell].flat()));
  }
  if (!foot) return;
  const last = make("tr", {}, "", make("tfoot", {}, "", table));
  foot.forEach((cell, i) => make(i ? "td" : "th", { class: head[i][1] ? "number" : "", ...(i ? {} : { scope: "row" }) }, cell, last));
}

function link(text, title, act) {
  const button = make("button", { type: "button", title, "data-key": "link " + text }, text);
  button.addEventListener("click", act);
  return button;
}

const ROUNDS = 300; // that have a row of their own; the choice of rounds has all

function overview(about, show) {
  const most = Math.max(1, ...about.rounds.map((row) => row.nbytes)), order = Object.keys(about.kinds);
  const sum = (name) => about.rounds.reduce((all, row) => all + row[name], 0);
  const lines = about.rounds.slice(0, ROUNDS).map((row) => {
    const button = link(row.round + " " + row.kind, about.kinds[row.kind].text, () => show({ round: String(row.round), kind: row.kind }));
    const bar = make("span", { class: "bytes " + shade(order, row.kind), "aria-hidden": "true" });
    bar.style.width = (100 * row.nbytes) / most + "%";
    return { cells: [[swatch(order, row.kind), button], whole(row.messages), [bytes(row.nbytes), bar]] };
  });
  const more = about.rounds.length - lines.length;
  if (more > 0) lines.push({ cells: [`… ${whole(more)} more: choose a round above`, "", ""] });
  rows(by("rounds"), [["round, kind"], ["messages", 1], ["bytes", 1]], lines, ["all", whole(sum("messages")), bytes(sum("nbytes"))]);
  const roles = about.roles.flatMap((row) => [
    { cells: ["from " + row.role, whole(row.sent), bytes(row.sent_bytes)] },
    { cells: ["to " + row.role, whole(row.received), bytes(row.received_bytes)] },
  ]);
  rows(by("roles"), [["role"], ["messages", 1], ["bytes", 1]], roles);
  const wrong = about.faults_seen.map((row) => ({ cells: [row.what, row.round + " " + row.kind, whole(row.messages)] }));
  rows(by("faults"), [["what"], ["round, kind"], ["messages", 1]], wrong);
  by("wrong").hidden = !wrong.length;
  by("kinds").replaceChildren();
  for (const [kind, { text, fields }] of Object.entries(about.kinds)) {
    make("dt", {}, "", by("kinds")).append(swatch(order, kind), kind);
    make("dd", {}, text + (fields.length ? `: ${fields.join(", ")}` : ""), by("kinds"));
  }
}

/** Mark the rows of the round and kind that are shown. */
function current(about, state) {
  [...by("rounds").tBodies[0].rows].slice(0, ROUNDS).forEach((line, i) => {
    const row = about.rounds[i], chosen = state.round === String(row.round) && (!state.kind || state.kind === row.kind);
    line.classList.toggle("chosen", chosen);
    if (chosen) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  });
}

/** Say what there is to say of one message; `focused(user)` hears of a click on a user. */
function message(one, kind, focused, none) {
  const place = by("message");
  place.replaceChildren();
  if (!one) return make("p", {}, none ? "There is none to choose." : "Click an arrow, or press ↓.", place);
  if (!one.seen) make("p", { class: "basis" }, "The viewpoint does not see this message at all.", place);
  const party = (name) => (focused && name.startsWith("user:") ? link(name, "Put in focus", () => focused(name.slice(5))) : name);
  const pairs = [
    ["id", one.id], ["kind", one.kind], ["meaning", kind.text], ["round", String(one.round)], ["from", party(one.from)], ["to", party(one.to)],
    ["bytes", one.nbytes ? whole(one.nbytes) : "0: to oneself, not on the wire"],
  ];
  if (kind.sealed_for) pairs.push(["sealed for", [...kind.layers, kind.sealed_for].join(", then ")]);
  for (const name of kind.fields) pairs.push(one.readable ? [name, one.fields[name]] : [name, "cannot be read from here", true]);
  const list = make("dl", {}, "", place);
  for (const [name, value, look] of pairs) {
    make("dt", {}, name, list);
    const cell = make("dd", look || (!one.seen && name !== "meaning") ? { class: "struck" } : {}, value instanceof Node ? "" : value, list);
    if (value instanceof Node) cell.appendChild(value);
  }
}

/** Keep a number such as 1e-06 on one line. */
const unbroken = (text) => text.split(/(\S*\de-\d+)/).map((part, i) => (i % 2 ? make("span", { class: "whole" }, part) : part));

const IDLE = "does not apply";

function figure(row, place) {
  const line = make("p", {}, "", place);
  make("span", { class: "basis" }, row.basis + ": ", line);
  line.append(...unbroken(row.text));
  if (row.odds) make("p", {}, row.odds, place);
  if (row.sure) atRisk(row.sure, place);
  if (row.source) make("p", { class: "source" }, row.source, place);
}

const RISK = { width: 270, height: 118, left: 44, top: 8, right: 6, bottom: 20 };

/** Draw of how many users an attacker is how sure: `prior` and `posterior` say of how many at least from each percent on. */
function atRisk(sure, place) {
  const lines = [["prior", sure.prior], ["posterior", sure.posterior]], users = Math.max(1, sure.prior[0]);
  const first = Math.max(0, Math.min(...lines.map(([, counts]) => counts.findIndex((count) => count < counts[0]))) - 1);
  const x = (percent) => RISK.left + ((RISK.width - RISK.left - RISK.right) * (percent - first)) / (100 - first);
  const y = (share) => RISK.top + (RISK.height - RISK.top - RISK.bottom) * (1 - share);
  const svg = draw("svg", { class: "risk", viewBox: `0 0 ${RISK.width} ${RISK.height}`, role: "img", "aria-label": "Of how many users an attacker is how sure, before the messages and with them" }, place);
  for (const share of [0, 0.5, 1]) {
    draw("line", { x1: RISK.left, x2: RISK.width - RISK.right, y1: y(share), y2: y(share), class: "lane" }, svg);
    draw("text", { x: RISK.left - 4, y: y(share) + 4, "text-anchor": "end" }, svg, 100 * share + " %");
  }
  for (const percent of [first, Math.round((first + 100) / 2), 100]) {
    draw("text", { x: x(percent), y: RISK.height - 4, "text-anchor": percent === 100 ? "end" : "middle" }, svg, percent + " %");
  }
  for (const [kind, counts] of lines) {
    const steps = counts.slice(first).map((count, i) => `H${x(first + i).toFixed(1)}V${y(count / users).toFixed(1)}`);
    draw("path", { class: kind, d: `M${x(first)} ${y(counts[first] / users).toFixed(1)}${steps.join("")}H${x(100)}` }, svg);
  }
  make("p", { class: "source" }, "Users of whose label she is at least so sure: dotted before the messages, the line with them.", place);
}

function figures(found) {
  const place = by("figures");
  place.replaceChildren();
  make("h2", {}, "Learnt by " + found.view, place);
  if (found.nobody) make("p", { class: "source" }, "Nobody sees everything; of the parties of this run, this one learns:", place);
  const idle = found.rows.filter((row) => row.basis === IDLE);
  for (const row of found.rows) if (row.basis !== IDLE) figure(row, place);
  if (idle.length) {
    const more = make("details", {}, "", place);
    make("summary", {}, counted(idle.length, "theorem") + (idle.length > 1 ? " do" : " does") + " not apply here", more);
    for (const row of idle) figure(row, more);
  }
  for (const [basis, meaning] of Object.entries(found.bases || {})) {
    make("b", {}, basis, make("p", { class: "source" }, "", place)).after(": " + meaning);
  }
  if (found.note) make("p", {}, found.note, place);
}
