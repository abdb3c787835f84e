"use strict";
// The page: what is asked for, and what happens when somebody chooses something else.

const by = (id) => document.getElementById(id);
const state = { run: "", view: "", channels: "plain", user: "", cluster: "", kind: "", round: "", offset: "0" };
let about = null, shown = { messages: [], lanes: [] }, at = -1, latest = 0;

async function start() {
  try {
    const { runs } = await ask("runs", {});
    state.run = runs[0];
    by("run-choice").hidden = runs.length < 2;
    for (const name of runs) make("option", { value: name }, name || "this run", by("run"));
    await open();
  } catch (error) { complain(error); }
}

async function open() {
  about = await ask("overview", { run: state.run });
  Object.assign(state, { view: "", user: "", cluster: "", kind: "", round: "", offset: "0" });
  if (inside) Object.assign(state, { user: String(inside.user ?? ""), cluster: String(inside.cluster ?? "") });
  setting(about);
  fill(by("view"), about.viewpoints.map((p) => [p.view, p.title]));
  fill(by("kind"), [["", "all"], ...Object.keys(about.kinds).map((kind) => [kind, kind])]);
  fill(by("round"), [["", "all"], ...roundsOf().map((round) => [round, round])]);
  by("cluster-choice").hidden = !about.clusters || about.clusters.count < 2;
  for (const id of ["user", "cluster", "before", "after", "channels"]) by(id).disabled = Boolean(inside);
  await show({});
}

const roundsOf = () => [...new Set(about.rounds.map((row) => String(row.round)))];

function fill(select, pairs) {
  select.replaceChildren();
  for (const [value, text] of pairs) make("option", { value }, text, select);
}

/** Show what `change` asks for; an answer that comes too late is left alone. */
async function show(change) {
  const before = { ...state }, mine = ++latest;
  Object.assign(state, change);
  try {
    const told = await ask("lanes", state);
    if (mine !== latest) return;
    const learnt = await learns();
    if (mine !== latest) return;
    shown = told;
    by("error").hidden = true;
    paint(learnt);
  } catch (error) {
    if (mine !== latest) return;
    Object.assign(state, before);
    complain(error);
    forms();
  }
}

/** The figures of the viewpoint; what is not known of a view is said beside the picture, and stops nothing. */
async function learns() {
  const view = inside ? state.view : state.view.replace("*", state.user);
  try { return await ask("figures", { run: state.run, view, channels: state.channels }); }
  catch (error) { return { rows: [], note: error.message }; }
}

function paint(learnt) {
  at = -1;
  forms();
  overview(about, state, show);
  const who = state.user !== "" ? "user " + state.user + " and whom she met" : "a cluster";
  by("what").textContent = `${whole(shown.messages.length)} messages of ${who}` + (state.round ? ", round " + state.round : "");
  by("notes").replaceChildren();
  for (const note of shown.notes) make("li", {}, note, by("notes"));
  picture(by("picture"), shown, about.kinds, "user:" + state.user, pick, (lane) => !inside && show({ user: lane.slice(5) }));
  message(null);
  figures(state.view.replace("*", state.user), learnt);
}

function forms() {
  for (const id of ["run", "view", "channels", "user", "cluster", "kind", "round"]) by(id).value = state[id];
  by("before").disabled = Boolean(inside) || state.user !== "" || Number(state.offset) === 0;
  by("after").disabled = Boolean(inside) || state.user !== "" || Number(state.offset) + shown.most >= shown.users;
}

function pick(index) {
  at = Math.max(0, Math.min(index, shown.messages.length - 1));
  const one = shown.messages[at];
  if (!one) return;
  choose(by("picture"), at);
  message(one, about.kinds[one.kind]);
}

function complain(error) {
  by("error").textContent = error.message;
  by("error").hidden = false;
}

function turn(step) {
  const rounds = ["", ...roundsOf()];
  const next = rounds.indexOf(state.round) + step;
  if (next >= 0 && next < rounds.length) show({ round: rounds[next] });
}

function page(step) { show({ offset: String(Math.max(0, Number(state.offset) + step * shown.most)) }); }

by("choices").addEventListener("submit", (event) => {
  event.preventDefault();
  const cluster = by("cluster").value.trim(), user = by("user").value.trim();
  const moved = cluster !== state.cluster;
  show({ user: moved && user === state.user ? "" : user, cluster, ...(moved ? { offset: "0" } : {}) });
});
for (const id of ["view", "channels", "kind", "round"]) by(id).addEventListener("change", () => show({ [id]: by(id).value }));
by("run").addEventListener("change", () => { state.run = by("run").value; open().catch(complain); });
by("before").addEventListener("click", () => page(-1));
by("after").addEventListener("click", () => page(1));
by("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  const acts = {
    ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), ArrowDown: () => pick(at + 1), ArrowUp: () => pick(at - 1),
    "/": () => by("user").focus(), Escape: () => show({ round: "", kind: "" }),
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});
start();
