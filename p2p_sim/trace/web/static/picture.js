"use strict";
// The picture: a lane for each party, an arrow for each message, rounds from top to bottom.

const ROW = 23, EDGE = 10, NARROW = 62, WIDE = 112, LABEL = 120;

/** Draw lanes and messages into `place`; `chosen(index)` hears of a click, `focused(user)` of one on a user's name. */
function picture(place, told, kinds, focus, chosen, focused) {
  place.replaceChildren();
  place.scrollTop = place.scrollLeft = 0;
  const longest = Math.max(0, ...told.lanes.map((lane) => lane.title.length));
  const step = Math.min(WIDE, Math.max(NARROW, longest * 8 + 20));
  const lanes = new Map(told.lanes.map((lane, number) => [lane.id, EDGE + (number + 0.5) * step]));
  const width = EDGE + told.lanes.length * step + LABEL;
  const heads = make("div", { id: "heads" }, "", place);
  heads.style.width = width + "px";
  for (const lane of told.lanes) head(heads, lane, lanes.get(lane.id), step, focus, focused);
  const order = Object.keys(kinds);
  for (const [round, messages] of byRound(told.messages)) {
    const band = make("section", { "aria-label": "round " + round }, "", place);
    band.style.width = width + "px";
    make("span", {}, `round ${round}: ${counted(messages.length, "message")}`, make("h3", {}, "", band));
    const height = messages.length * ROW + 8;
    const svg = draw("svg", { width, height, role: "img", "aria-label": counted(messages.length, "arrow") }, band);
    for (const x of lanes.values()) draw("line", { x1: x, x2: x, y1: 0, y2: height, class: "lane" }, svg);
    messages.forEach(([index, message], row) => {
      const ends = [message.from, message.to].map((party) => lanes.get(party) ?? lanes.get(""));
      const shade = "kind-" + (order.indexOf(message.kind) % 4);
      mark(svg, message, kinds[message.kind], shade, (row + 0.5) * ROW + 6, ends, () => chosen(index)).dataset.index = index;
    });
  }
}

function head(heads, lane, x, step, focus, focused) {
  const acts = lane.user !== "" && focused;
  const named = lane.state ? `${lane.title} (${lane.state})` : lane.title;
  const name = make(acts ? "button" : "span", { title: acts ? named + ": put in focus" : named }, lane.title, heads);
  name.style.left = x + "px";
  name.style.maxWidth = step - 6 + "px";
  if (lane.user !== "" && lane.user === focus) name.classList.add("focus");
  if (lane.state) name.classList.add("gone");
  if (acts) name.addEventListener("click", () => focused(lane.user));
}

function byRound(messages) {
  const found = new Map();
  messages.forEach((message, index) => {
    if (!found.has(message.round)) found.set(message.round, []);
    found.get(message.round).push([index, message]);
  });
  return [...found.entries()].sort((a, b) => a[0] - b[0]);
}

function mark(svg, message, kind, shade, y, [from, to], clicked) {
  const group = draw("g", { class: `mark ${shade}` + (message.seen ? "" : " unseen"), "data-id": message.id }, svg);
  const own = from === to, way = to > from ? 1 : -1;
  const tip = own ? [from + 2, y + 5, -1] : [to - way * 2, y, way];
  const line = own ? `M ${from} ${y - 6} h 20 v 11 h -14` : `M ${from} ${y} H ${tip[0] - way * 6}`;
  label(group, message, kind, own ? from + 25 : Math.min(from, to) + 7, own ? y + 4 : y - 4);
  draw("path", { d: line, class: "shaft" }, group);
  draw("path", { d: line, class: "grip" }, group);
  draw("path", { class: "head", d: `M ${tip[0]} ${tip[1]} l ${-tip[2] * 8} -4 v 8 z` }, group);
  draw("title", {}, group, message.id + (message.seen ? "" : ", not seen from here"));
  group.addEventListener("click", clicked);
  return group;
}

/** Say what a message is at the left end of its arrow, where one sees it without scrolling. */
function label(group, message, kind, x, y) {
  const text = draw("text", { x, y }, group);
  draw("tspan", { class: "name" }, text, message.kind);
  if (!kind.fields.length) return;
  const shown = message.readable ? Object.values(message.fields).join(", ") : kind.fields.join(", ");
  text.append(" ");
  draw("tspan", message.readable ? {} : { class: "struck" }, text, shown.length > 18 ? shown.slice(0, 17) + "…" : shown);
}

/** Show one mark as chosen and bring it into sight. */
function choose(place, index) {
  for (const old of place.querySelectorAll(".mark.chosen")) old.classList.remove("chosen");
  const group = place.querySelector(`.mark[data-index="${index}"]`);
  if (!group) return;
  group.classList.add("chosen");
  const box = group.getBoundingClientRect(), frame = place.getBoundingClientRect(), above = 70;
  if (box.top < frame.top + above || box.bottom > frame.bottom - 20) place.scrollTop += box.top - frame.top - frame.height / 3;
  if (box.left < frame.left || box.left > frame.right - 120) place.scrollLeft += box.left - frame.left - 40;
}

const counted = (number, one) => whole(number) + " " + one + (number === 1 ? "" : "s");
