"use strict";
// The page's controls: fields, buttons and keys, and what the address says when one goes back.

/** Bring every control to what is shown. */
function forms() {
  const focused = state.user !== "", views = about.viewpoints.map((p) => p.view);
  const options = about.viewpoints.map((p) => [p.view, p.title + (p.view.includes("*") && !focused ? " (nobody yet)" : "")]);
  fill(by("view"), inside ? options : [...options, [OTHER, "others, typed here:"]]);
  for (const option of by("view").options) option.disabled = option.value.includes("*") && !focused;
  for (const id of ["run", "channels", "user", "cluster", "kind", "round"]) by(id).value = state[id];
  viewed(state.view, views);
  for (const id of ["user", "cluster", "who"]) by(id).removeAttribute("aria-invalid");
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
  by("list").setAttribute("aria-pressed", String(state.as === "list"));
}

function viewed(view, views) {
  const typed = !views.includes(view);
  by("view").value = typed ? OTHER : view;
  by("looking").hidden = !typed;
  if (typed) by("who").value = view;
}

/** Leave what was typed and refused where it is, so that it can be mended. */
function again(change) {
  const fields = ["user", "cluster"].filter((id) => change[id] && change[id] !== state[id]);
  for (const id of fields) by(id).value = change[id];
  if (change.view && change.view !== state.view && !by("view").querySelector(`[value="${CSS.escape(change.view)}"]`)) {
    viewed(change.view, []);
    fields.push("who");
  }
  for (const id of fields) by(id).setAttribute("aria-invalid", "true");
}

function turn(step) {
  const rounds = ["", ...roundsOf()], next = rounds.indexOf(state.round) + step;
  if (next >= 0 && next < rounds.length) show({ round: rounds[next] });
}

const focus = (user) => show({ user, offset: "0" });
const leave = () => ({ user: "", offset: "0", ...(state.view.includes("*") ? { view: "" } : {}) });
const page = (step) => show({ offset: String(Math.max(0, Number(state.offset) + step * shown.most)) });

/** Read a number as the page writes it: 17, user:17, 1,234. */
const number = (id) => by(id).value.trim().replace(/^user:/, "").replace(/(?<=\d)[,_ ](?=\d{3})/g, "");

/** Light or dark, empty for what the machine prefers. */
function dress(theme) {
  state.theme = ["light", "dark"].includes(theme) ? theme : "";
  if (state.theme) document.documentElement.dataset.theme = state.theme;
}

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

onSubmit("finding", () => { const user = number("user"); show(user === "" ? leave() : { user, offset: "0" }); });
onSubmit("going", () => show({ ...leave(), cluster: number("cluster") }));
onSubmit("looking", () => show({ view: by("who").value.trim() }));
chosenBy("view", looked);
for (const id of ["channels", "kind", "round"]) chosenBy(id, (value) => show({ [id]: value }));
chosenBy("run", (run) => open(run, {}, "pushState").catch(complain));
const ACTS = {
  earlier: () => turn(-1), later: () => turn(1), before: () => page(-1), after: () => page(1),
  previous: () => pick(at - 1), next: () => pick(at + 1),
  whole: () => show({ ...leave(), cluster: shown.cluster === null ? "" : String(shown.cluster) }),
  list: () => {
    state.as = state.as === "list" ? "" : "list";
    forms();
    messages();
    point(at);
    remember(state, "pushState");
  },
  theme: () => {
    const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    dress(dark ? "light" : "dark");
    remember(state, "replaceState");
  },
};
for (const [id, act] of Object.entries(ACTS)) by(id).addEventListener("click", act);
by("overview").addEventListener("click", (event) => {
  if (event.detail && event.target.closest("button")) by("picture").focus({ preventScroll: true });
}, true);
by("picture").addEventListener("scroll", () => beyond(by("picture"), by("beyond")));
window.addEventListener("resize", () => { beyond(by("picture"), by("beyond")); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); by("picture").focus(); });
window.addEventListener("popstate", () => {
  const wanted = { ...home(), ...addressed(), theme: state.theme }, run = wanted.run ?? by("run").options[0]?.value;
  if (run !== state.run) open(run, wanted, "replaceState").catch(complain);
  else if (about) show(wanted, "replaceState");
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !about) return;
  const field = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName), leaves = { Escape: () => by("picture").focus() };
  const acts = { Escape: () => show({ round: "", kind: "" }) };
  if (event.target === document.body || event.target.closest("#lanes, #choices")) {  // elsewhere arrows scroll
    Object.assign(acts, {
      ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), ArrowDown: () => pick(at + 1), ArrowUp: () => pick(at - 1),
    });
  }
  if (!inside && event.target.closest("#picture")) acts["/"] = () => by("user").focus();  // a letter acts where it belongs alone
  const act = (field ? leaves : acts)[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
start();
