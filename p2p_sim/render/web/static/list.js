"use strict";
// The list: the messages of the picture as a table, to read, to copy, and for who does not see arrows.

/** Write messages into `place`; `looked`: whether somebody's eyes are looked through; `chosen(index)` hears of a click. */
function list(place, shown, kinds, looked, chosen) {
  place.replaceChildren();
  const table = make("table", { class: "list", "aria-label": counted(shown.messages.length, "message") }, "", place);
  const head = make("tr", {}, "", make("thead", {}, "", table));
  const titles = [["round", 1], ["kind"], ["from"], ["to"], ["bytes", 1], ...(looked ? [["from here"]] : []), ["fields"]];
  for (const [title, number] of titles) make("th", { scope: "col", class: number ? "number" : "" }, title, head);
  const body = make("tbody", {}, "", table);
  shown.messages.forEach((one, index) => {
    const row = make("tr", { class: "entry" + (one.seen ? "" : " unseen"), "data-id": one.id, "data-index": index }, "", body);
    make("td", { class: "number" }, one.round, row);
    make("button", { type: "button", tabindex: -1, title: one.id }, one.kind, make("td", {}, "", row));
    for (const end of [one.from, one.to]) make("td", {}, end, row);
    make("td", { class: "number" }, whole(one.nbytes), row);
    if (looked) make("td", {}, sight(one, kinds[one.kind]), row);
    make("td", one.readable ? {} : { class: "struck" }, content(one, kinds[one.kind]), row);
    row.addEventListener("click", () => chosen(index));
  });
}

/** Say what a viewpoint has of a message. */
function sight(one, kind) {
  if (!one.seen) return "not seen";
  return one.readable ? "read" : kind.fields.length ? "seen, not read" : "seen";
}

/** Say what a message holds, or what its fields are called. */
function content(one, kind) {
  if (!one.readable) return kind.fields.join(", ");
  return Object.entries(one.fields).map(([name, value]) => `${name} = ${value}`).join(", ");
}
