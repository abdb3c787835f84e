"use strict";
// The mark of a kind: a colour and a shape where its arrows begin, both other than those of the next kind, so nobody needs the colour.

const COLOURS = 4; // of page.css; they and the seven shapes tell 28 kinds apart
const SHAPES = [
  "M -3.5 0 a 3.5 3.5 0 1 0 7 0 a 3.5 3.5 0 1 0 -7 0 z", // a disc
  "M -3.2 -3.2 h 6.4 v 6.4 h -6.4 z", // a square
  "M 0 -4.5 l 4.2 7.6 h -8.4 z", // a triangle
  "M -4 -4 l 8 8 m 0 -8 l -8 8", // a cross
  "M 0 -5 l 5 5 l -5 5 l -5 -5 z", // a diamond
  "M 0 -5.5 v 11", // a bar
  "M -3.5 0 a 3.5 3.5 0 1 0 7 0 a 3.5 3.5 0 1 0 -7 0 z", // a ring
];
const RING = SHAPES.length - 1;

/** Name the classes that give a kind its colour; `order`: the names of all kinds. */
const shade = (order, kind) => "kind-" + (order.indexOf(kind) % COLOURS);

/** Draw the shape of a kind where an arrow begins. */
function tail(order, kind, x, y, parent) {
  const shape = order.indexOf(kind) % SHAPES.length;
  return draw("path", { class: "tail" + (shape === RING ? " ring" : ""), d: SHAPES[shape], transform: `translate(${x} ${y})` }, parent);
}

/** Make a small arrow that shows how a kind is drawn, to stand beside its name. */
function swatch(order, kind) {
  const svg = draw("svg", { class: "swatch " + shade(order, kind), width: 28, height: 12, "aria-hidden": "true" }, null);
  draw("path", { class: "shaft", d: "M 6 6 H 21" }, svg);
  draw("path", { class: "head", d: "M 27 6 l -8 -4 v 8 z" }, svg);
  tail(order, kind, 6, 6, svg);
  return svg;
}
