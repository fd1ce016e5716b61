"use strict";
// All text of the data is put in as text (textContent), never as HTML.
const part = (id) => document.getElementById(id);
const DRAFT_AFTER = 700;
let state = null, answers = {}, busy = false, timer = null, draft = Promise.resolve();

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

async function ask(action, body) {
  const how = action === "state" ? {} : {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body || {})};
  let answer;
  try {
    answer = await fetch(`api/${action}`, how);
  } catch {
    throw new Error("Labelling has ended in the terminal, so this was not saved. Start it again there and open the address that it prints; what was saved before is there.");
  }
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error || `Not saved (${answer.status}).`);
  return told;
}

function problem(text) {
  part("problem").textContent = text || "";
  part("problem").hidden = !text;
}

const sameAnswers = (one, other) =>
  Object.keys(one).length === Object.keys(other).length && Object.keys(one).every((id) => one[id] === other[id]);

async function act(action, human) {
  if (busy || !state || (action !== "undo" && !state.item) || (action === "undo" && !state.can_undo)) return;
  busy = true;
  clearTimeout(timer);
  const item = state.item, comment = part("comment").value;
  try {
    await draft;  // what is on its way is not to arrive after this
    if (action === "skip" && (comment !== item.comment || !sameAnswers(answers, item.human))) {
      await ask("draft", {example: item.id, human: answers, comment});  // it is there when the output comes again
    }
    const said = action === "undo" ? {} : action === "skip" ? {example: item.id} : {example: item.id, human, comment};
    show(await ask(action, said));
    problem("");
    part("status").textContent = {label: "Saved.", skip: "Skipped.", undo: "Taken back: change it and save it again."}[action];
  } catch (error) {
    problem(error.message);
  } finally {
    busy = false;
  }
}

const verdict = (said) => act("label", {...answers, [state?.dimension]: said});
const step = (place) => state?.steps[place] && verdict(state.steps[place][1]);
const neither = () => {
  const {[state?.dimension]: _, ...rest} = answers;
  return act("label", rest);
};

function keepDraft() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (busy || !state?.item) return;
    const body = {example: state.item.id, human: answers, comment: part("comment").value};
    draft = ask("draft", body).then(() => { part("status").textContent = "Draft kept."; }, (error) => problem(error.message));
  }, DRAFT_AFTER);
}

function answer(id, value) {
  if (answers[id] === value || value === undefined) delete answers[id];
  else answers[id] = value;
  showAnswers();
  keepDraft();
}

function turn(place) {
  const question = state?.item && state.questions[place];
  if (!question) return;
  const next = {undefined: true, true: false, false: undefined}[String(answers[question.id])];
  answer(question.id, next);
}

function showAnswers() {
  for (const button of part("questions").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(answers[button.dataset.question] === (button.dataset.value === "yes")));
  }
}

// An image of an example: its data, a link to it, or why it is not shown. Nothing is fetched.
function picture(kind, value) {
  if (kind === "note") return make("p", value, "soft");
  const shown = make(kind === "link" ? "a" : "img", kind === "link" ? value : undefined, "picture");
  if (kind === "link") Object.assign(shown, {href: value, rel: "noopener noreferrer", target: "_blank"});
  else Object.assign(shown, {src: value, alt: "Image of the example"});
  return shown;
}

function showSteps() {
  for (const name of ["pass", "fail"]) part(name).hidden = state.steps.length > 0;
  part("steps").replaceChildren(...state.steps.map(([name, value], place) => {
    const button = make("button", `${name} `);
    button.append(make("kbd", String((place + 1) % 10)));
    button.dataset.value = value;
    button.addEventListener("click", () => step(place));
    return button;
  }));
}

function showQuestions() {
  part("questions-part").hidden = !state.questions.length;
  part("questions").replaceChildren(...state.questions.map((question, place) => {
    const row = make("li");
    row.append(make("kbd", place < 9 && !state.steps.length ? String(place + 1) : "·"), make("span", question.text, "asked"));
    for (const value of ["yes", "no"]) {
      const button = make("button", value);
      Object.assign(button.dataset, {question: question.id, value});
      button.setAttribute("aria-label", `${question.text} ${value}`);
      button.addEventListener("click", () => answer(question.id, value === "yes"));
      row.append(button);
    }
    return row;
  }));
}

function showAgreement(found) {
  part("agreement").hidden = !found;
  if (!found) return;
  part("judge").textContent = found.judge;
  part("threshold").textContent = String(Math.round(1000 * found.threshold) / 1000);
  const names = {random: "drawn at random", all: "all labelled", passed: "what people passed", failed: "what people failed"};
  const whole = (share) => String(Math.round(100 * share));
  const rows = Object.entries(names).map(([key, name]) => ({name, ...found.figures[key]}));
  rows.push(...found.questions.map((each) => ({name: each.question, ...each})));
  part("figures").replaceChildren(...rows.filter((row) => row.n).map((row) => {
    const line = make("tr");
    for (const text of [row.name, whole(row.value), `${whole(row.low)}–${whole(row.high)}`, row.n]) line.append(make("td", String(text)));
    return line;
  }));
  part("note").textContent = found.figures.random.n
    ? "Those drawn at random stand for all outputs; the others were chosen, so they are harder or easier."
    : "These were chosen and not drawn at random, so they do not stand for all outputs.";
  curve(found.curve);
}

function curve(points) {
  const svg = part("curve");
  const draw = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    return element;
  };
  svg.replaceChildren();
  svg.toggleAttribute("hidden", points.length < 2);
  if (points.length < 2) return;
  const last = points.at(-1)[0], first = points[0][0];
  const x = (n) => 30 + 262 * (n - first) / (last - first), y = (share) => 8 + 84 * (1 - share);
  for (const share of [0, 0.5, 1]) {
    svg.append(draw("line", {class: "axis", x1: 30, x2: 292, y1: y(share), y2: y(share)}), draw("text", {x: 0, y: y(share) + 4}, `${100 * share} %`));
  }
  const low = points.map((point) => `${x(point[0])},${y(point[2])}`), high = points.map((point) => `${x(point[0])},${y(point[3])}`);
  svg.append(draw("polygon", {class: "band", points: [...low, ...high.reverse()].join(" ")}));
  svg.append(draw("polyline", {class: "line", points: points.map((point) => `${x(point[0])},${y(point[1])}`).join(" ")}));
  svg.append(draw("text", {x: 292, y: 106, "text-anchor": "end"}, `${last} labels`));
}

function show(told) {
  const fresh = !state;
  state = told;
  const {item, count} = told;
  part("dimension").textContent = told.dimension;
  part("bar").max = told.outputs;
  part("bar").value = count.labelled;
  const sides = told.steps.length ? ["in the better half", "in the worse half"] : ["pass", "fail"];
  part("progress").textContent = `${count.labelled} of ${told.outputs} by ${told.rater}: ${count.passed} ${sides[0]}, ${count.failed} ${sides[1]}`
    + (count.comments ? `, ${count.comments} with a comment` : "") + (count.skipped ? `, ${count.skipped} skipped` : "");
  part("enough").textContent = `${told.enough.sentence[0].toUpperCase()}${told.enough.sentence.slice(1)}.`;
  part("assumed").textContent = told.enough.assumed;
  showAgreement(told.agreement);
  part("desk").hidden = !item;
  part("done").hidden = Boolean(item);
  for (const name of ["pass", "fail", "save", "skip"]) part(name).disabled = !item;
  part("undo").disabled = !told.can_undo;
  if (fresh) { showQuestions(); showSteps(); }
  for (const button of part("steps").querySelectorAll("button")) {
    button.disabled = !item;
    button.setAttribute("aria-pressed", String(Number(button.dataset.value) === item?.human[told.dimension]));
  }
  if (!item) return;
  answers = {...item.human};
  for (const name of ["id", "why", "input", "output"]) part(name).textContent = item[name];
  for (const name of ["context", "reference"]) {
    part(name).textContent = item[name] || "";
    part(`${name}-part`).hidden = !item[name];
  }
  for (const name of ["input", "context", "reference", "output"]) {
    part(name).append(...(item.images?.[name] || []).map(([kind, value]) => picture(kind, value)));
  }
  part("comment").value = item.comment;
  showAnswers();
  if (document.activeElement === part("comment") || document.activeElement?.disabled) document.activeElement.blur();
  window.scrollTo(0, 0);
}

const KEYS = {
  p: () => state?.steps.length || verdict(true),
  f: () => state?.steps.length || verdict(false),
  s: () => act("skip"),
  u: () => act("undo"),
  c: () => part("comment").focus(),
  Enter: neither,
};

document.addEventListener("keydown", (event) => {
  if (event.target === part("comment")) {
    if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      part("comment").blur();
    }
    return;
  }
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && event.target instanceof HTMLButtonElement) return;  // it works the button
  if (/^[0-9]$/.test(event.key) && state?.steps.length) return step((Number(event.key) + 9) % 10);
  if (/^[1-9]$/.test(event.key)) return turn(Number(event.key) - 1);
  const does = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!does) return;
  event.preventDefault();
  does();
});
part("comment").addEventListener("input", keepDraft);
for (const [id, does] of Object.entries({pass: KEYS.p, fail: KEYS.f, save: neither, skip: KEYS.s, undo: KEYS.u})) {
  part(id).addEventListener("click", does);
}
window.addEventListener("beforeunload", (event) => {
  if (timer && part("comment").value !== (state?.item?.comment ?? "") && !busy && part("status").textContent !== "Draft kept.") event.preventDefault();
});
ask("state").then(show, (error) => problem(error.message));
