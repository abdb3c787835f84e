"use strict";
// What stands around the picture: the overview, the chosen message, and what the viewpoint learns.

function setting(about, clusters) {
  document.title = about.name + " – p2p-sim";
  by("title").textContent = about.protocol + ": " + about.name;
  const parts = Object.entries(about.parameters).map(([name, value]) => name + " = " + value);
  parts.push("seed " + (about.seed ?? "withheld"), (about.users === null ? "?" : whole(about.users)) + " users", "trace " + about.trace);
  if (about.crypto === "real") parts.push("real cryptography, keys from the seed");
  if (about.faults.length) parts.push("faults " + about.faults.join(", "));
  if (clusters) {
    const { count, least, most } = clusters;
    parts.push(whole(count) + " clusters of " + whole(least) + (most > least ? " to " + whole(most) : "") + " users");
  }
  if (about.digest) parts.push("digest " + about.digest);
  by("setting").textContent = parts.join(" · ");
  by("holds").textContent = inside ? inside.holds : "";
  by("holds").hidden = !inside;
}

function rows(table, head, lines) {
  table.replaceChildren();
  const top = make("tr", {}, "", make("thead", {}, "", table));
  for (const [title, number] of head) make(title ? "th" : "td", { class: number ? "number" : "" }, title, top);
  const body = make("tbody", {}, "", table);
  for (const line of lines) {
    const row = make("tr", line.chosen ? { class: "chosen" } : {}, "", body);
    line.cells.forEach((cell, i) => {
      const place = make("td", { class: head[i][1] ? "number" : "" }, cell instanceof Node ? "" : cell, row);
      if (cell instanceof Node) place.appendChild(cell);
    });
  }
}

function link(text, title, act) {
  const button = make("button", { type: "button", title }, text);
  button.addEventListener("click", act);
  return button;
}

function overview(about, state, show) {
  const most = Math.max(1, ...about.rounds.map((row) => row.nbytes));
  const lines = about.rounds.map((row) => {
    const button = link(row.round + " " + row.kind, about.kinds[row.kind].text, () => show({ round: String(row.round), kind: row.kind }));
    const meter = make("meter", { max: most, value: row.nbytes, "aria-hidden": "true" });
    const chosen = state.round === String(row.round) && (!state.kind || state.kind === row.kind);
    return { chosen, cells: [button, whole(row.messages), bytes(row.nbytes), meter] };
  });
  rows(by("rounds"), [["round, kind"], ["messages", 1], ["on the wire", 1], [""]], lines);
  const roles = about.roles.flatMap((row) => [
    { cells: [row.role + " sent", whole(row.sent), bytes(row.sent_bytes)] },
    { cells: [row.role + " received", whole(row.received), bytes(row.received_bytes)] },
  ]);
  rows(by("roles"), [["role"], ["messages", 1], ["bytes", 1]], roles);
  const wrong = about.faults_seen.map((row) => ({ cells: [row.what, row.round + " " + row.kind, whole(row.messages)] }));
  rows(by("faults"), [["what"], ["round, kind"], ["messages", 1]], wrong);
  by("wrong").hidden = !wrong.length;
}

/** Say what there is to say of one message; `focused(user)` hears of a click on a user. */
function message(one, kind, focused) {
  const place = by("message");
  place.replaceChildren();
  make("h2", {}, "Message", place);
  if (!one) return make("p", {}, "Click an arrow, or press ↓.", place);
  const party = (name) => (focused && name.startsWith("user:") ? link(name, "Put in focus", () => focused(name.slice(5))) : name);
  const told = [
    ["id", one.id], ["kind", one.kind], ["", kind.text], ["round", String(one.round)], ["from", party(one.from)], ["to", party(one.to)],
    ["bytes", one.nbytes ? whole(one.nbytes) : "0: it stays with her"],
  ];
  if (kind.sealed_for) told.push(["sealed for", [...kind.layers, kind.sealed_for].join(", then ")]);
  for (const name of kind.fields) told.push(one.readable ? [name, one.fields[name]] : [name, "cannot be read from here", true]);
  const list = make("dl", {}, "", place);
  for (const [name, value, look] of told) {
    make("dt", {}, name, list);
    const cell = make("dd", look || !one.seen ? { class: "struck" } : {}, value instanceof Node ? "" : value, list);
    if (value instanceof Node) cell.appendChild(value);
  }
  if (!one.seen) make("p", {}, "The viewpoint does not see this message at all.", place);
}

function figures(found) {
  const place = by("figures");
  place.replaceChildren();
  make("h2", {}, "Learnt by " + found.view, place);
  for (const row of found.rows) {
    const line = make("p", {}, "", place);
    make("span", { class: "basis" }, row.basis + ": ", line);
    line.append(row.text);
    if (row.source) make("p", { class: "source" }, row.source, place);
  }
  if (found.note) make("p", {}, found.note, place);
}
