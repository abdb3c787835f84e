"use strict";
// What stands around the picture: the overview, the chosen message, and what the viewpoint learns.

function setting(about) {
  document.title = about.name + " – p2p-sim";
  document.getElementById("title").textContent = about.protocol + ": " + about.name;
  const parts = Object.entries(about.parameters).map(([name, value]) => name + " = " + value);
  parts.push("seed " + (about.seed ?? "withheld"), (about.users === null ? "?" : whole(about.users)) + " users", "trace " + about.trace);
  if (about.crypto === "real") parts.push("real cryptography, keys from the seed");
  if (about.faults.length) parts.push("faults " + about.faults.join(", "));
  if (about.digest) parts.push("digest " + about.digest);
  if (about.clusters && about.clusters.count > 1)
    parts.push(whole(about.clusters.count) + " clusters of " + whole(about.clusters.least) + " to " + whole(about.clusters.most) + " users");
  document.getElementById("setting").textContent = parts.join(" · ");
}

function rows(table, head, lines) {
  table.replaceChildren();
  const top = make("tr", {}, "", make("thead", {}, "", table));
  head.forEach(([title, number]) => make("th", { scope: "col", class: number ? "number" : "" }, title, top));
  const body = make("tbody", {}, "", table);
  for (const line of lines) {
    const row = make("tr", line.chosen ? { class: "chosen" } : {}, "", body);
    line.cells.forEach((cell, i) => {
      const place = make("td", { class: head[i][1] ? "number" : "" }, cell instanceof Node ? "" : cell, row);
      if (cell instanceof Node) place.appendChild(cell);
    });
  }
}

function overview(about, state, show) {
  const most = Math.max(1, ...about.rounds.map((row) => row.nbytes));
  const lines = about.rounds.map((row) => {
    const button = make("button", { type: "button", title: about.kinds[row.kind].text }, row.round + " " + row.kind);
    button.addEventListener("click", () => show({ round: String(row.round), kind: row.kind }));
    const meter = make("meter", { max: most, value: row.nbytes, "aria-hidden": "true" });
    const chosen = state.round === String(row.round) && (!state.kind || state.kind === row.kind);
    return { chosen, cells: [button, whole(row.messages), bytes(row.nbytes), meter] };
  });
  rows(document.getElementById("rounds"), [["round, kind"], ["messages", 1], ["on the wire", 1], [""]], lines);
  const roles = about.roles.map((row) => ({
    cells: [row.role, whole(row.sent), bytes(row.sent_bytes), whole(row.received), bytes(row.received_bytes)],
  }));
  rows(document.getElementById("roles"), [["role"], ["sent", 1], ["", 1], ["received", 1], ["", 1]], roles);
}

function told(place, pairs) {
  const list = make("dl", {}, "", place);
  for (const [name, value, struck] of pairs) {
    make("dt", {}, name, list);
    make("dd", struck ? { class: "struck" } : {}, value, list);
  }
}

function message(one, kind) {
  const place = document.getElementById("message");
  place.replaceChildren();
  make("h2", {}, "Message", place);
  if (!one) return make("p", {}, "Click an arrow, or press ↓.", place);
  const sealed = kind.sealed_for ? [["sealed for", [...kind.layers, kind.sealed_for].join(", then ")]] : [];
  told(place, [
    ["id", one.id], ["kind", one.kind + ": " + kind.text], ["round", String(one.round)], ["from", one.from], ["to", one.to],
    ["bytes", one.nbytes ? whole(one.nbytes) : "0: to herself, not on the wire"], ...sealed,
    ...kind.fields.map((name) => (one.readable ? [name, one.fields[name]] : [name, "cannot be read from here", true])),
  ]);
  if (!one.seen) make("p", {}, "The viewpoint does not see this message at all.", place);
}

function figures(view, found) {
  const place = document.getElementById("figures");
  place.replaceChildren();
  make("h2", {}, "What " + (view || "the learner") + " learns", place);
  for (const row of found.rows) {
    const line = make("p", {}, "", place);
    make("span", { class: "basis" }, row.basis + ": ", line);
    line.append(row.text);
    if (row.source) make("p", {}, row.source, place).style.fontSize = "0.85rem";
  }
  if (found.note) make("p", {}, found.note, place);
}
