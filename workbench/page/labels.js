"use strict";
// Labels on the page Examples: what a rater says, kept as it is typed, and how far the judge agrees.
function drawSteps() {
  for (const name of ["pass", "fail"]) {
    part(name).hidden = steps().length > 0;
    part(name).setAttribute("aria-pressed", String(item().human?.[labelling()?.dimension] === (name === "pass")));
  }
  part("steps").replaceChildren(...steps().map(([name, value], place) => {
    const button = make("button", `${name} `);
    button.append(make("kbd", String((place + 1) % 10)));
    button.dataset.value = value;
    button.setAttribute("aria-pressed", String(value === item().human?.[labelling().dimension]));
    button.addEventListener("click", () => step(place));
    return button;
  }));
}

function drawAnswers() {
  for (const button of part("questions").querySelectorAll(".mine button")) {
    button.setAttribute("aria-pressed", String(answers[button.dataset.question] === (button.dataset.value === "yes")));
  }
}

const sameAnswers = (left, right) =>
  Object.keys(left).length === Object.keys(right).length && Object.keys(left).every((id) => left[id] === right[id]);
const typed = () => item() && labelling() && (part("comment").value !== (item().comment ?? "") || !sameAnswers(answers, item().human || {}));
const saying = () => ({...about(), example: item().id, human: answers, comment: part("comment").value});

function sendDraft() {
  clearTimeout(timer);
  timer = null;
  const sent = saying();
  draft = ask("draft", null, sent).then(() => {
    if (item()?.id === sent.example) Object.assign(item(), {human: {...sent.human}, comment: sent.comment});
    part("status").textContent = "Draft kept.";
  }, (error) => problem(error.message));
  return draft;
}

function keepDraft() {
  part("status").textContent = "";
  clearTimeout(timer);
  timer = setTimeout(() => { if (!busy && typed()) sendDraft(); }, DRAFT_AFTER);
}

async function keepNow() {
  if (timer && !busy && typed()) sendDraft();
  await draft;
}

async function act(action, human) {
  if (busy || !labelling() || (action !== "undo" && !item()) || (action === "undo" && single() && !state?.can_undo)) return;
  busy = true;
  clearTimeout(timer);
  timer = null;
  const after = told.next;
  try {
    await draft;  // what is on its way is not to arrive after this
    if (action === "skip" && typed()) await ask("draft", null, saying());  // it is there when the output comes again
    const said = action === "undo" ? about() : action === "skip" ? {...about(), example: item().id} : {...saying(), human};
    const now = await ask(action, null, said);
    busy = false;
    const next = single() || action === "undo" ? now.item?.id : after || item().id;
    history[single() && told.alone ? "replaceState" : "pushState"](null, "", moved({id: told.alone ? null : next || null, start: null}));
    await look();
    part("status").textContent = {label: "Saved.", skip: "Skipped.", undo: "Taken back: change it and save it again."}[action];
  } catch (error) {
    problem(error.message);
  } finally {
    busy = false;
  }
}

const verdict = (said) => act("label", {...answers, [labelling()?.dimension]: said});
const step = (place) => steps()[place] && verdict(steps()[place][1]);
const neither = () => {
  const {[labelling()?.dimension]: _, ...rest} = answers;
  return act("label", rest);
};

function answer(id, value) {
  if (answers[id] === value || value === undefined) delete answers[id];
  else answers[id] = value;
  drawAnswers();
  keepDraft();
}

function turnAnswer(place) {
  const question = item() && labelling()?.questions[place];
  if (question) answer(question.id, {undefined: true, true: false, false: undefined}[String(answers[question.id])]);
}

// ---- how far the judge agrees, one by one ----------------------------------------------------------------------------
function drawAgreement(found) {
  part("agreement").hidden = !found;
  if (!found) return;
  part("judge").textContent = found.judge;
  part("threshold").textContent = String(Math.round(1000 * found.threshold) / 1000);
  const names = {random: "drawn at random", all: "all labelled", passed: "what people passed", failed: "what people failed"};
  const whole = (share) => String(Math.round(100 * share));
  const rows = Object.entries(names).map(([key, name]) => ({name, ...found.figures[key]}));
  rows.push(...found.questions.map((each) => ({name: each.question, ...each})));
  part("figures").replaceChildren(...rows.filter((each) => each.n).map((each) => {
    const line = make("tr");
    for (const text of [each.name, whole(each.value), `${whole(each.low)}–${whole(each.high)}`, each.n]) line.append(make("td", String(text)));
    return line;
  }));
  part("note").textContent = found.figures.random.n
    ? "Those drawn at random stand for all outputs; the others were chosen, so they are harder or easier."
    : "These were chosen and not drawn at random, so they do not stand for all outputs.";
  drawCurve(found.curve);
}

function drawCurve(points) {
  const svg = part("curve");
  const put = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    svg.append(element);
  };
  svg.replaceChildren();
  svg.toggleAttribute("hidden", points.length < 2);
  if (points.length < 2) return;
  const last = points.at(-1)[0], first = points[0][0];
  const x = (n) => 30 + 262 * (n - first) / (last - first), y = (share) => 8 + 84 * (1 - share);
  for (const share of [0, 0.5, 1]) {
    put("line", {class: "axis", x1: 30, x2: 292, y1: y(share), y2: y(share)});
    put("text", {x: 0, y: y(share) + 4}, `${100 * share} %`);
  }
  const low = points.map((point) => `${x(point[0])},${y(point[2])}`), high = points.map((point) => `${x(point[0])},${y(point[3])}`);
  put("polygon", {class: "band", points: [...low, ...high.reverse()].join(" ")});
  put("polyline", {class: "line", points: points.map((point) => `${x(point[0])},${y(point[1])}`).join(" ")});
  put("text", {x: 292, y: 106, "text-anchor": "end"}, `${last} labels`);
}
