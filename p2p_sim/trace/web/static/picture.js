"use strict";
// The picture: a lane for each party, an arrow for each message, rounds from top to bottom.

const STEP = 116, TOP = 8, ROW = 22, BAND = 26, LEFT = 76;

/** Draw lanes and messages into `place`; `chosen(index)` hears of a click, `focused(lane)` of one on a user's name. */
function picture(place, told, kinds, focus, chosen, focused) {
  place.replaceChildren();
  const at = new Map(told.lanes.map((lane, number) => [lane.id, LEFT + number * STEP + STEP / 2]));
  const outside = LEFT + told.lanes.length * STEP + STEP / 2;
  const needsOutside = told.messages.some((m) => !at.has(m.from) || !at.has(m.to));
  const width = outside + (needsOutside ? STEP / 2 : -STEP / 2) + 90;
  const heads = make("div", { id: "heads" }, "", place);
  heads.style.width = width + "px";
  for (const lane of told.lanes) head(heads, lane.id, at.get(lane.id), lane.role === "user" ? () => focused(lane.id) : null, focus);
  if (needsOutside) head(heads, "other users", outside, null, focus);
  const rounds = byRound(told.messages);
  const height = TOP + rounds.reduce((sum, [, rows]) => sum + BAND + rows.length * ROW, 0) + 10;
  const svg = draw("svg", { width, height, role: "img", "aria-label": whole(told.messages.length) + " messages" }, place);
  for (const x of [...at.values(), ...(needsOutside ? [outside] : [])])
    draw("line", { x1: x, x2: x, y1: 0, y2: height, class: "lane" }, svg);
  let y = TOP;
  for (const [round, rows] of rounds) {
    draw("rect", { x: 0, y, width, height: BAND - 4, class: "band" }, svg);
    draw("text", { x: 6, y: y + 15 }, svg, "round " + round);
    y += BAND;
    for (const [index, message] of rows) {
      mark(svg, message, index, y + ROW / 2, at.get(message.from) ?? outside, at.get(message.to) ?? outside, kinds[message.kind], chosen);
      y += ROW;
    }
  }
}

function head(heads, text, x, act, focus) {
  const button = make("button", { type: "button", title: act ? text + ": put in focus" : text }, text, heads);
  button.style.left = x + "px";
  if (text === focus) button.classList.add("focus");
  if (act) button.addEventListener("click", act);
  else button.disabled = true;
}

function byRound(messages) {
  const found = new Map();
  messages.forEach((message, index) => {
    if (!found.has(message.round)) found.set(message.round, []);
    found.get(message.round).push([index, message]);
  });
  return [...found.entries()].sort((a, b) => a[0] - b[0]);
}

function mark(svg, message, index, y, from, to, kind, chosen) {
  const group = draw("g", { class: "mark" + (message.seen ? "" : " hidden"), "data-index": index, "data-id": message.id }, svg);
  const own = from === to, way = to >= from ? 1 : -1;
  const end = own ? from + 4 : to - way * 2;
  const line = own
    ? `M ${from} ${y - 6} h 22 v 11 h -16`
    : `M ${from} ${y} H ${end - way * 6}`;
  draw("path", { d: line }, group);
  draw("path", { d: line, class: "grip" }, group);
  const tip = own ? [from + 2, y + 5, -1] : [end, y, way];
  draw("path", { class: "head", d: `M ${tip[0]} ${tip[1]} l ${-tip[2] * 8} -4 v 8 z` }, group);
  label(group, message, kind, own ? from + 27 : (from + to) / 2, y - 4, own);
  draw("title", {}, group, message.id + (message.seen ? "" : ", not seen from here"));
  group.addEventListener("click", () => chosen(index));
}

function label(group, message, kind, x, y, own) {
  const text = draw("text", { x, y: own ? y + 8 : y, "text-anchor": own ? "start" : "middle" }, group, message.kind);
  if (!kind.fields.length) return;
  const shown = message.readable ? Object.values(message.fields).join(", ") : kind.fields.join(", ");
  const short = shown.length > 18 ? shown.slice(0, 17) + "…" : shown;
  const part = draw("tspan", message.readable ? {} : { class: "struck" }, text, short);
  part.before(" ");
}

/** Show one mark as chosen and bring it into sight. */
function choose(place, index) {
  for (const old of place.querySelectorAll(".mark.chosen")) old.classList.remove("chosen");
  const group = place.querySelector(`.mark[data-index="${index}"]`);
  if (!group) return;
  group.classList.add("chosen");
  const box = group.getBBox();
  if (box.y < place.scrollTop || box.y + 60 > place.scrollTop + place.clientHeight) place.scrollTop = box.y - place.clientHeight / 3;
}
