"use strict";
// The page's address holds what is looked at, after the #, which no browser sends: reload, back and a bookmark bring it again.

const NOTHING = { user: "", cluster: "", kind: "", round: "", offset: "0", view: "", channels: "plain", as: "", message: "" };
const ADDRESSED = ["run", ...Object.keys(NOTHING), "theme"];

/** Return what the address asks for; names that are none of the page's are left alone. */
function addressed() {
  const found = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(ADDRESSED.filter((name) => found.has(name)).map((name) => [name, found.get(name)]));
}

/** Let the address tell what is shown; `how`: "pushState" where back should lead here again, else "replaceState". */
function remember(state, how) {
  const given = ADDRESSED.filter((name) => state[name] && state[name] !== NOTHING[name]).map((name) => [name, state[name]]);
  const text = given.length ? "#" + new URLSearchParams(given) : "";
  if (text !== location.hash) history[how](null, "", text || location.href.split("#")[0]);
}
