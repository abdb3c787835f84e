"use strict";
// The page: what is asked for, and what happens when somebody chooses something else.

const NOTHING = { user: "", cluster: "", kind: "", round: "", offset: "0", view: "", channels: "plain" };
const NONE = { messages: [], lanes: [], total: 0, users: 0, most: 1, cluster: null, clusters: null };
const OTHER = "?"; // the choice of a viewpoint that is typed
const state = { run: "", ...NOTHING };
let about = null, shown = NONE, at = -1, latest = 0, known = "";

async function start() {
  try {
    const { runs } = await ask("runs", {});
    by("run-choice").hidden = runs.length < 2;
    for (const name of runs) make("option", { value: name }, name || "this run", by("run"));
    state.run = runs[0];
    await open();
  } catch (error) { complain(error); }
}

/** Show another run. */
async function open() {
  const mine = ++latest;
  Object.assign(state, NOTHING, inside ? { user: String(inside.user ?? "") } : {});
  known = "";
  about = null;
  shown = NONE;
  for (const id of ["picture", "notes", "figures", "message", "setting", "rounds", "roles"]) by(id).replaceChildren();
  by("error").hidden = true;
  const told = await working(ask("overview", { run: state.run }));
  if (mine !== latest) return;
  about = told;
  setting(about, null);
  fill(by("kind"), [["", "all"], ...Object.keys(about.kinds).map((kind) => [kind, kind])]);
  fill(by("round"), [["", "all"], ...roundsOf().map((round) => [round, round])]);
  by("finding").hidden = Boolean(inside);
  message(null);
  forms();
  overview(about, state, show);
  await show({});
}

const roundsOf = () => [...new Set(about.rounds.map((row) => String(row.round)))];

function fill(select, pairs) {
  select.replaceChildren();
  for (const [value, text] of pairs) make("option", { value }, text, select);
}

/** Show what `change` asks for; an answer that comes too late is left alone, and an error changes nothing else. */
async function show(change) {
  const before = { ...state }, mine = ++latest;
  Object.assign(state, change);
  try {
    const told = await working(ask("lanes", state));
    if (mine !== latest) return;
    shown = told;
    by("error").hidden = true;
    paint();
  } catch (error) {
    if (mine !== latest) return;
    Object.assign(state, before);
    complain(error);
    forms();
  }
  await learn();
}

/** Wait for an answer; one that takes long is said to. */
async function working(answer) {
  const timer = setTimeout(() => { by("busy").textContent = "working…"; }, 400);
  try { return await answer; }
  finally { clearTimeout(timer); by("busy").textContent = ""; }
}

/** The figures of the viewpoint come after the picture, for they may take two seconds. */
async function learn() {
  const view = inside ? state.view : state.view.replace("user:*", "user:" + state.user);
  const asked = { run: state.run, view, channels: state.channels }, key = JSON.stringify(asked);
  if (key === known) return;
  known = key;
  figures({ view: view || "…", rows: [], note: "working…" });
  let found;
  try { found = await ask("figures", asked); }
  catch (error) { found = { view: view || "…", rows: [], note: error.message }; }
  if (key === known) figures(found);
}

function paint() {
  at = -1;
  forms();
  overview(about, state, show);
  setting(about, shown.clusters);
  by("what").textContent = heading();
  by("notes").replaceChildren();
  const notes = shown.total ? shown.notes : ["they sent and received no such messages", ...shown.notes];
  for (const note of notes) make("li", {}, note, by("notes"));
  by("legend").hidden = shown.messages.every((one) => one.readable);
  picture(by("picture"), shown, about.kinds, state.user, pick, inside ? null : focus);
  message(null);
}

function heading() {
  const cut = shown.messages.length < shown.total ? `the first ${whole(shown.messages.length)} of ` : "";
  const some = shown.lanes.filter((lane) => lane.user !== "");
  const parts = [cut + counted(shown.total, "message")];
  if (state.user !== "") parts.push("user " + state.user);
  else if (some.length) parts.push(`users ${some[0].user} to ${some[some.length - 1].user}, ${some.length} of ${whole(shown.users)}`);
  if (shown.cluster !== null && shown.clusters) parts.push("cluster " + shown.cluster);
  if (state.round) parts.push("round " + state.round);
  if (state.kind) parts.push(state.kind);
  return parts.join(" · ");
}

/** Bring every control to what is shown. */
function forms() {
  const focused = state.user !== "", views = about.viewpoints.map((p) => p.view);
  const options = about.viewpoints.map((p) => [p.view, p.title + (p.view.includes("*") && !focused ? " (nobody yet)" : "")]);
  fill(by("view"), inside ? options : [...options, [OTHER, "others, typed here:"]]);
  for (const option of by("view").options) option.disabled = option.value.includes("*") && !focused;
  const typed = !views.includes(state.view);
  for (const id of ["run", "channels", "user", "cluster", "kind", "round"]) by(id).value = state[id];
  by("view").value = typed ? OTHER : state.view;
  by("looking").hidden = !typed;
  if (typed) by("who").value = state.view;
  by("channels-choice").hidden = !state.view.split("+").includes("wire");
  const rounds = ["", ...roundsOf()], now = rounds.indexOf(state.round);
  by("earlier").disabled = now <= 0;
  by("later").disabled = now >= rounds.length - 1;
  by("before").disabled = Number(state.offset) === 0;
  by("after").disabled = Number(state.offset) + shown.most >= shown.users;
  by("before").parentElement.hidden = Boolean(inside) || focused || shown.users <= shown.most;
  by("going").hidden = Boolean(inside) || !shown.clusters;
  by("whole").hidden = Boolean(inside) || !focused;
  by("whole").textContent = shown.clusters ? "Her cluster" : "All users";
}

function pick(index) {
  if (!shown.messages.length) return;
  at = Math.max(0, Math.min(index, shown.messages.length - 1));
  choose(by("picture"), at);
  message(shown.messages[at], about.kinds[shown.messages[at].kind], inside ? null : focus);
}

function complain(error) {
  by("error").textContent = error.message;
  by("error").hidden = false;
}

function turn(step) {
  const rounds = ["", ...roundsOf()], next = rounds.indexOf(state.round) + step;
  if (next >= 0 && next < rounds.length) show({ round: rounds[next] });
}

const focus = (user) => show({ user, offset: "0" });
const leave = () => ({ user: "", offset: "0", ...(state.view.includes("*") ? { view: "" } : {}) });
const page = (step) => show({ offset: String(Math.max(0, Number(state.offset) + step * shown.most)) });

/** After a choice by mouse the keys belong to the picture again; who chooses by keys goes on choosing. */
function chosenBy(id, act) {
  let mouse = false;
  by(id).addEventListener("pointerdown", () => { mouse = true; });
  by(id).addEventListener("keydown", () => { mouse = false; });
  by(id).addEventListener("change", () => {
    act(by(id).value);
    if (mouse) by("picture").focus({ preventScroll: true });
  });
}

function looked(view) {
  if (view !== OTHER) return show({ view });
  by("looking").hidden = false;
  by("who").focus();
}

function onSubmit(id, act) {
  by(id).addEventListener("submit", (event) => { event.preventDefault(); act(); });
}

onSubmit("finding", () => { const user = by("user").value.trim(); show(user === "" ? leave() : { user, offset: "0" }); });
onSubmit("going", () => show({ ...leave(), cluster: by("cluster").value.trim() }));
onSubmit("looking", () => show({ view: by("who").value.trim() }));
chosenBy("view", looked);
for (const id of ["channels", "kind", "round"]) chosenBy(id, (value) => show({ [id]: value }));
chosenBy("run", (run) => { state.run = run; open().catch(complain); });
by("earlier").addEventListener("click", () => turn(-1));
by("later").addEventListener("click", () => turn(1));
by("before").addEventListener("click", () => page(-1));
by("after").addEventListener("click", () => page(1));
by("whole").addEventListener("click", () => show({ ...leave(), cluster: shown.cluster === null ? "" : String(shown.cluster) }));
by("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !about) return;
  const field = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName);
  const acts = field ? { Escape: () => by("picture").focus() } : {
    ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), ArrowDown: () => pick(at + 1), ArrowUp: () => pick(at - 1),
    "/": () => by("user").focus(), Escape: () => show({ round: "", kind: "" }),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
start();
