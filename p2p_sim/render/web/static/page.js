"use strict";
// The page: what is asked for, and what happens when somebody chooses something else.

const NONE = { messages: [], lanes: [], notes: [], total: 0, users: 0, most: 1, cluster: null, clusters: null };
const ASKED = ["run", "user", "cluster", "kind", "round", "offset", "view", "channels"];
const OTHER = "?"; // the choice of a viewpoint that is typed
const state = { run: "", ...NOTHING, theme: "" };
let about = null, shown = NONE, at = -1, latest = 0, known = "";

async function start() {
  const wanted = addressed();
  dress(wanted.theme || "");
  try {
    const { runs } = await ask("runs", {});
    by("run-choice").hidden = runs.length < 2;
    for (const name of runs) make("option", { value: name }, name || "this run", by("run"));
    const there = !("run" in wanted) || runs.includes(wanted.run);
    await open(there ? wanted.run ?? runs[0] : runs[0], there ? wanted : {}, "replaceState");
    if (!there) complain(new Error(`run ${wanted.run}: not among those that are served; this is another`));
  } catch (error) { complain(error); }
}

/** Where one begins: in an export with the user whom it is about. */
const home = () => ({ ...NOTHING, user: String(inside?.user ?? "") });

/** Show another run, from the start or as `wanted` says. */
async function open(run, wanted, how) {
  const mine = ++latest;
  Object.assign(state, home(), { run });
  known = "";
  about = null;
  shown = NONE;
  at = -1;
  document.body.classList.add("empty");
  by("run").value = run;
  by("setting").textContent = "reading the run…";
  for (const id of ["cut", "holds", "error"]) by(id).hidden = true;
  let found;
  try { found = await ask("overview", { run }); }
  catch (error) {
    if (mine !== latest) return;
    by("title").textContent = run || "p2p-sim";
    by("setting").textContent = "";
    remember(state, how);
    throw error;
  }
  if (mine !== latest) return;
  about = found;
  document.body.classList.remove("empty");
  setting(about, null);
  fill(by("kind"), [["", "all"], ...Object.keys(about.kinds).map((kind) => [kind, kind])]);
  fill(by("round"), [["", "all"], ...roundsOf().map((round) => [round, round])]);
  by("finding").hidden = by("slash").hidden = Boolean(inside);
  overview(about, show);
  paint();
  const error = await show({ ...wanted, run }, how);
  if (!error || shown !== NONE || !about) return;
  await show(home(), "replaceState"); // what the address asks for is not there: the run is
  complain(error);
}

const roundsOf = () => [...new Set(about.rounds.map((row) => String(row.round)))];

function fill(select, pairs) {
  select.replaceChildren();
  for (const [value, text] of pairs) make("option", { value }, text, select);
}

/** Show what `change` asks for; an answer that comes too late is left alone; an error is returned and changes nothing else. */
async function show(change, how = "pushState") {
  const before = { ...state }, mine = ++latest;
  let refused = null;
  Object.assign(state, { message: "" }, change);
  try {
    const found = await working(ask("lanes", asking()));
    if (mine !== latest) return null;
    shown = found;
    by("error").hidden = true;
    paint();
    point(shown.messages.findIndex((one) => one.id === state.message));
    by("said").textContent = by("what").textContent + (state.view ? ". " + by("legend").textContent : "");
  } catch (error) {
    if (mine !== latest) return null;
    Object.assign(state, before);
    refused = error;
    complain(error);
    forms();
    again(change);
  }
  remember(state, refused ? "replaceState" : how);
  await learn();
  return refused;
}

const asking = () => Object.fromEntries(ASKED.map((name) => [name, state[name]]));

/** Wait for an answer; one that takes long is said to. */
async function working(answer) {
  const timer = setTimeout(() => { by("busy").textContent = "working…"; }, 400);
  try { return await answer; }
  finally { clearTimeout(timer); by("busy").textContent = ""; }
}

/** Name who looks. */
const seer = () => state.view.replace("user:*", "user:" + state.user);

/** The figures of the viewpoint come after the picture, for they may take two seconds. */
async function learn() {
  const view = inside ? state.view : seer();
  const asked = { run: state.run, view, channels: state.channels }, key = JSON.stringify(asked);
  if (key === known) return;
  known = key;
  const name = seer() || about.main, nobody = !view;
  if (about.cut) return figures({ view: name, rows: [], note: "The run was cut off: what a view of all of it learns is not computed." });
  figures({ view: name, nobody, rows: [], note: "working…" });
  let found;
  try { found = await ask("figures", asked); }
  catch (error) { found = { view: name, rows: [], note: error.message }; }
  if (key === known) figures({ ...found, nobody });
}

/** Bring the whole page to what is shown; who is at a control by keys stays there. */
function paint() {
  const held = document.activeElement, key = held.dataset.key;
  at = -1;
  forms();
  current(about, state);
  setting(about, shown.clusters);
  by("what").textContent = heading();
  by("notes").replaceChildren();
  const who = state.user === "" ? "they" : "user " + state.user, such = state.kind || state.round ? "such " : "";
  const notes = shown.total || shown === NONE ? shown.notes : [`${who} sent and received no ${such}messages`, ...shown.notes];
  for (const note of notes) make("li", {}, note, by("notes"));
  legend();
  messages();
  point(-1);
  if (held === document.body) return;
  if (!held.isConnected || held.disabled || held.offsetParent === null)
    (document.querySelector(`[data-key="${CSS.escape(key || "")}"]`) || by("picture")).focus({ preventScroll: true });
}

function messages() {
  const place = by("picture"), focused = inside ? null : focus;
  place.scrollTop = place.scrollLeft = 0;
  if (state.as === "list") list(place, shown, about.kinds, state.view !== "", pick);
  else picture(place, shown, about.kinds, state.user, pick, focused);
  beyond(place, by("beyond"));
}

/** Say what the viewpoint has of what is shown, and how that is drawn. */
function legend() {
  const place = by("legend"), drawn = shown.messages, says = (...parts) => place.append(...parts);
  const unseen = drawn.filter((one) => !one.seen).length, shut = drawn.filter((one) => one.seen && !one.readable).length;
  place.replaceChildren();
  if (state.view) {
    says(`Of ${drawn.length < shown.total ? "those drawn" : "these"}, ${seer()} reads `, make("b", {}, whole(drawn.length - unseen - shut)), ", sees but cannot read ");
    says(whole(shut), shut ? " (" : "", shut ? make("span", { class: "struck" }, "struck out") : "", shut ? ")" : "", " and does not see ");
    says(whole(unseen), unseen ? " (" : "", unseen ? make("span", { class: "struck" }, "dotted") : "", unseen ? ")." : ".");
  } else if (about.viewpoints.some((point) => point.view === about.main)) {
    says("Everything in them is shown, which nobody sees. A viewpoint strikes out what that party cannot read: ");
    says(link("look as " + about.main, "The viewpoint of " + about.main, () => show({ view: about.main })), ".");
  }
  if (shown.lanes.some((lane) => lane.state)) says(" ", make("span", { class: "gone" }, "Dotted names"), " dropped out or lied.");
}

function heading() {
  if (shown === NONE) return "Messages";
  const cut = shown.messages.length < shown.total ? `the first ${whole(shown.messages.length)} of ` : "";
  const every = about.rounds.reduce((sum, row) => sum + row.messages, 0);
  const some = shown.lanes.filter((lane) => lane.user !== "");
  const parts = [cut + (shown.total < every ? whole(shown.total) + " of the run's " + counted(every, "message") : counted(every, "message"))];
  if (state.user !== "") {
    const lane = some.find((one) => one.user === state.user);
    parts.push("user " + state.user + (lane?.state ? ` (${lane.state})` : ""));
  } else if (some.length) parts.push(`users ${some[0].user} to ${some[some.length - 1].user}, ${some.length} of ${whole(shown.users)}`);
  if (shown.cluster !== null && shown.clusters) parts.push("cluster " + shown.cluster);
  if (state.round) parts.push("round " + state.round);
  if (state.kind) parts.push(state.kind);
  return parts.join(" · ");
}

/** Choose a message, if there is one of that number. */
function pick(index) {
  if (index < 0 || index >= shown.messages.length) return;
  state.message = shown.messages[index].id;
  point(index);
  remember(state, "replaceState");
}

function point(index) {
  at = index;
  const one = shown.messages[at];
  if (one) choose(by("picture"), at);
  message(one, one && about.kinds[one.kind], inside ? null : focus, !shown.messages.length);
  by("which").textContent = one ? `Message ${whole(at + 1)} of ${whole(shown.messages.length)}` : "Message";
  by("previous").disabled = at <= 0;
  by("next").disabled = at >= shown.messages.length - 1;
}

function complain(error) {
  by("error").textContent = error.message;
  by("error").hidden = false;
}
