"use strict";
// The picture: a lane for each party, an arrow for each message, rounds from top to bottom.

const ROW = 23, EDGE = 8, NARROW = 30, WIDE = 112, LABEL = 112;

/** Draw lanes and messages into `place`; `chosen(index)` hears of a click, `focused(user)` of one on a user's name. */
function picture(place, shown, kinds, focus, chosen, focused) {
  place.replaceChildren();
  const names = short(shown.lanes), [lanes, wide] = spread(names, shown.lanes, place.clientWidth - EDGE - LABEL);
  const width = Math.max(wide + LABEL, place.clientWidth);
  const heads = make("div", { id: "heads", role: "group", "aria-label": "Parties" }, "", place);
  heads.style.width = width + "px";
  shown.lanes.forEach((lane, number) => head(heads, lane, names[number], lanes.get(lane.id), focus, focused));
  const order = Object.keys(kinds);
  for (const [round, messages] of byRound(shown.messages)) {
    const band = make("section", { "aria-label": "round " + round }, "", place);
    band.style.width = width + "px";
    make("span", {}, `round ${round}: ${counted(messages.length, "message")}`, make("h3", {}, "", band));
    const height = messages.length * ROW + 8;
    const svg = draw("svg", { width, height, role: "img", "aria-label": counted(messages.length, "arrow") + "; the list says the same in words" }, band);
    for (const { x } of lanes.values()) draw("line", { x1: x, x2: x, y1: 0, y2: height, class: "lane" }, svg);
    messages.forEach(([index, message], row) => {
      const ends = [message.from, message.to].map((party) => (lanes.get(party) ?? lanes.get("")).x);
      mark(svg, message, kinds[message.kind], order, (row + 0.5) * ROW + 6, ends, () => chosen(index)).dataset.index = index;
    });
  }
}

/** Name lanes: users by number, and by its last digits where all begin alike. */
function short(lanes) {
  const users = lanes.map((lane) => lane.user).filter((user) => user !== ""), [first = ""] = users;
  let alike = 0;
  while (alike < first.length - 1 && users.every((user) => user.length === first.length && user[alike] === first[alike])) alike++;
  const cut = users.length > 1 && alike > 2 ? alike : 0;
  return lanes.map((lane) => (lane.user && cut ? "…" + lane.user.slice(cut) : lane.user || lane.title));
}

/** Say where lanes are, as wide as their names need, wider where there is room; and how wide they are together. */
function spread(names, lanes, room) {
  const least = lanes.map((lane, number) => Math.max(NARROW, lane.user ? names[number].length * 8 + (names[number] === lane.user ? 14 : 20) : lane.title.length * 8.6 + 16));
  const spare = Math.max(0, room - least.reduce((sum, one) => sum + one, 0)) / Math.max(1, lanes.length);
  const places = new Map();
  let right = EDGE;
  lanes.forEach((lane, number) => {
    const width = Math.max(least[number], Math.min(WIDE, least[number] + spare));
    places.set(lane.id, { x: Math.round(right + width / 2), width });
    right += width;
  });
  return [places, right];
}

function head(heads, lane, text, { x, width }, focus, focused) {
  const acts = lane.user !== "" && focused;
  const named = lane.state ? `${lane.title} (${lane.state})` : lane.title;
  const looks = { title: acts ? named + ": put in focus" : named, "data-lane": lane.title, "data-key": "lane " + lane.title };
  const name = make(acts ? "button" : "span", looks, text, heads);
  if (acts) name.setAttribute("aria-label", named);
  name.style.left = x + "px";
  name.style.maxWidth = width - 2 + "px";
  if (lane.user !== "" && lane.user === focus) name.classList.add("focus");
  if (lane.state) name.classList.add("gone");
  if (acts) name.addEventListener("click", () => focused(lane.user));
}

/** Say how many lanes are out of sight, and how to see them. */
function beyond(place, line) {
  const frame = place.getBoundingClientRect(), right = frame.left + place.clientWidth + 1;
  const names = [...place.querySelectorAll("#heads > *")], boxes = names.map((name) => name.getBoundingClientRect());
  const cut = boxes.filter((box) => box.left < frame.left - 1 || box.right > right).length;
  line.hidden = cut === 0;
  line.textContent = cut ? `${cut} of ${counted(names.length, "lane")} ${cut === 1 ? "is" : "are"} out of sight: scroll the picture sideways, widen the window, or choose List.` : "";
}

function byRound(messages) {
  const found = new Map();
  messages.forEach((message, index) => {
    if (!found.has(message.round)) found.set(message.round, []);
    found.get(message.round).push([index, message]);
  });
  return [...found.entries()].sort((a, b) => a[0] - b[0]);
}

function mark(svg, message, kind, order, y, [from, to], clicked) {
  const group = draw("g", { class: "mark " + shade(order, message.kind) + (message.seen ? "" : " unseen"), "data-id": message.id }, svg);
  const own = from === to, way = to > from ? 1 : -1;
  const tip = own ? [from + 2, y + 5, -1] : [to - way * 2, y, way];
  const line = own ? `M ${from} ${y - 6} h 20 v 11 h -14` : `M ${from} ${y} H ${tip[0] - way * 6}`;
  label(group, message, kind, own ? from + 25 : Math.min(from, to) + 7, own ? y + 4 : y - 4);
  draw("path", { d: line, class: "shaft" }, group);
  draw("path", { d: line, class: "grip" }, group);
  draw("path", { class: "head", d: `M ${tip[0]} ${tip[1]} l ${-tip[2] * 8} -4 v 8 z` }, group);
  tail(order, message.kind, from, own ? y - 6 : y, group);
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

/** Show one message, an arrow or a row of the list, as chosen, and bring it into sight. */
function choose(place, index) {
  for (const old of place.querySelectorAll(".chosen")) old.classList.remove("chosen");
  const group = place.querySelector(`[data-index="${index}"]`);
  if (!group) return;
  group.classList.add("chosen");
  const box = group.getBoundingClientRect(), frame = place.getBoundingClientRect(), above = 70;
  if (box.top < frame.top + above || box.bottom > frame.bottom - 20) place.scrollTop += box.top - frame.top - frame.height / 3;
  if (group.tagName === "TR") return;
  if (box.left < frame.left || box.left > frame.right - 120) place.scrollLeft += box.left - frame.left - 40;
}

const counted = (number, one) => whole(number) + " " + one + (number === 1 ? "" : "s");
