"use strict";
// Everything that comes from data is put in as text (textContent), never as HTML.
const part = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function cell(name, ...content) {
  const made = make("td");
  made.setAttribute("role", "cell");
  if (name) made.dataset.name = name;
  made.append(...content.filter((each) => each !== null && each !== undefined));
  return made;
}

function row(...cells) {
  const made = make("tr");
  made.setAttribute("role", "row");
  made.append(...cells);
  return made;
}

// An example's id that leads to it on the page Examples.
function toExample(run, id, file) {
  const made = make("a", id, "name");
  made.href = `examples?${new URLSearchParams({run, ...(file ? {file} : {}), id})}`;
  return made;
}

async function ask(name, given, body) {
  const how = body ? {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)} : {};
  const query = given ? `?${new URLSearchParams(given)}` : "";
  let answer;
  try {
    answer = await fetch(`api/${name}${query}`, how);
  } catch {
    throw new Error("The command has ended in the terminal, so this was not done. Start it again there, and open the address that it prints; what was saved before is there.");
  }
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error || `It did not work (${answer.status}).`);
  return told;
}

function problem(text) {
  part("problem").textContent = text || "";
  part("problem").hidden = !text;
}

const trimmed = (text) => text.replace(/^(-?)0\./, "$1.").replace("-", "−");
function number(value, signed, digits = 2) {
  const text = value.toFixed(digits).replace(/^-(0\.0+)$/, "$1");  // no minus before nothing
  return (signed && value > 0 && Number(text) > 0 ? "+" : "") + trimmed(text);
}

// A figure in words: the number, its interval, or why there is none.
function said(figure, signed) {
  if (!figure) return "none";
  if (figure.value === null) return figure.reason || "undefined";
  if (figure.low === null || figure.low === undefined) return number(figure.value, signed);
  return `${number(figure.value, signed)} [${number(figure.low, signed)}, ${number(figure.high, signed)}]`;
}

// Its number with the interval drawn from `least` to `most`.
function drawn(figure, least, most, signed) {
  const box = make("div");
  if (!figure || figure.value === null) {
    box.append(make("span", figure ? figure.reason || "undefined" : "none", "soft"));
    return box;
  }
  const text = make("span", said(figure, signed));
  if (figure.reason) text.title = figure.reason;
  box.append(text);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const x = (value) => 4 + 132 * (Math.min(most, Math.max(least, value)) - least) / (most - least);
  const put = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    svg.append(element);
  };
  const known = figure.low !== null && figure.low !== undefined;
  const side = !signed || !known ? "" : figure.low > 0 ? " above" : figure.high < 0 ? " below" : "";
  for (const [name, value] of [["viewBox", "0 0 140 16"], ["class", `interval${side}`], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
  put("line", {class: "axis", x1: 4, x2: 136, y1: 8, y2: 8});
  put("line", {class: "zero", x1: x(0), x2: x(0), y1: 2, y2: 14});
  if (known) put("line", {class: "span", x1: x(figure.low), x2: x(figure.high), y1: 8, y2: 8});
  put("circle", {class: "dot", cx: x(figure.value), cy: 8, r: 3.5});
  box.append(svg);
  return box;
}
