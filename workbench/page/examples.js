"use strict";
const DRAFT_AFTER = 700, NARROW = matchMedia("(max-width: 60rem)"), TOGGLES = ["disagree", "raters", "unsure"];
const KEPT = ["run", "file", "split", ...TOGGLES, "yes", "since", "start"];  // with id and one, all of the address
// told: the list and what the page says around it; one: the example that is shown; state: the queue, one by one
let told = null, one = null, state = null, answers = {}, busy = false, timer = null, draft = Promise.resolve(), turn = 0, others = [];
const address = () => new URLSearchParams(location.search);
const single = () => Boolean(told?.alone) || address().get("one") === "1";
const rater = () => localStorage.getItem("rater") || "";
const me = () => (told?.alone || !rater() ? {} : {rater: rater()});
const about = () => ({run: address().get("run") || "", ...me()});
const labelling = () => told?.labelling;
const item = () => one?.item;
const steps = () => labelling()?.steps || [];

// ---- where we are: all of it is in the address ----------------------------------------------------------------------
function query() {
  const now = address();
  return {...Object.fromEntries(KEPT.filter((name) => now.get(name)).map((name) => [name, now.get(name)])), ...me(), ...(now.get("id") ? {id: now.get("id")} : {})};
}

function moved(changes) {
  const now = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "" || value === false) now.delete(name);
    else now.set(name, value === true ? "1" : value);
  }
  return `${location.pathname}${now.size ? `?${now}` : ""}`;
}

async function go(changes, replace) {
  await keepNow();
  history[replace ? "replaceState" : "pushState"](null, "", moved(changes));
  return look();
}

async function look() {
  const mine = ++turn;
  try {
    if (!told || !single()) told = await ask("examples", query());
    if (mine !== turn) return;
    if (single()) state = await ask("state", about());
    if (mine !== turn) return;
    let id = address().get("id");
    if (!id) {
      id = single() ? state.item?.id : NARROW.matches ? null : told.rows[0]?.id;
      if (!single()) told.next = told.rows[id ? 1 : 0]?.id;
      if (id && !told.alone) history.replaceState(null, "", moved({id}));
    }
    const found = id ? await ask("example", {...query(), id, ...(single() ? {blind: 1} : {})}) : null;
    if (mine !== turn) return;
    draw(found);
    problem(state?.problem || "");
    if (single()) drawFigures().catch((error) => problem(error.message));
  } catch (error) {
    if (mine === turn) problem(error.message);
  }
}

// ---- the whole page -------------------------------------------------------------------------------------------------
function draw(found) {
  const fresh = one?.item.id !== found?.item.id, narrow = NARROW.matches && !single();
  one = found;
  document.body.classList.toggle("single", single());
  document.body.classList.toggle("listed", !single());
  document.body.classList.toggle("shows", Boolean(one));
  part("nav").hidden = Boolean(told.alone);
  part("title").textContent = told.alone ? "Label" : "Examples of";
  part("run").textContent = told.alone ? labelling().dimension : address().get("run");
  document.title = told.alone ? "Label · askance" : `Examples of ${address().get("run")} · askance`;
  part("to-judge").hidden = part("to-disagreements").hidden = !told.file;
  part("to-disagreements").href = `disagreements?${new URLSearchParams({run: address().get("run") || ""})}`;
  part("to-judge").href = `judge?${new URLSearchParams({run: address().get("run"), file: told.file || ""})}`;
  part("no-labels").hidden = !told.why_shut;
  part("no-labels").textContent = told.why_shut ? `Nothing can be labelled here. ${told.why_shut}` : "";
  part("filters").hidden = Boolean(told.alone);
  part("list-part").hidden = part("total").hidden = single();
  part("aside").hidden = !single();
  part("desk").hidden = !one;
  part("done").hidden = !single() || Boolean(one);
  part("done-said").textContent = told.alone ? "Press Ctrl+C in the terminal: it says what to run next." : "Leave “Label blind” to see them all.";
  if (!told.alone) drawFilters();
  if (!single()) drawList();
  drawProgress();
  if (one) drawExample(fresh);
  if (fresh && narrow) window.scrollTo(0, 0);
}

function options(select, rows, chosen) {
  select.replaceChildren(...rows.map(([value, text]) => {
    const option = make("option", text);
    Object.assign(option, {value, selected: value === chosen});
    return option;
  }));
}

function drawFilters() {
  const now = address(), counts = told.counts, blind = single();
  for (const name of TOGGLES) {
    part(name).setAttribute("aria-pressed", String(now.get(name) === "1"));
    part(name).querySelector("span").textContent = counts[name] ?? "";
    part(name).hidden = blind || counts[name] === undefined;
  }
  const named = (name) => (counts[name] === undefined ? "" : ` (${counts[name]})`);
  options(part("yes"), [["", "any question"], ...(told.asks || []).map((each) => [each.id, each.text + (each.id === now.get("yes") ? named("yes") : "")])], now.get("yes") || "");
  const own = (told.files || []).filter((each) => each !== told.file).map((each) => [`${now.get("run")}/${each}`, each]);
  const since = [["", "no other judge"], [`${now.get("run")}/start`, "what the run began with"], ...own, ...others.filter((each) => each !== now.get("run")).map((each) => [`${each}/judge.yaml`, each])];
  options(part("since"), since.map(([value, text]) => [value, text + (value && value === now.get("since") ? named("since") : "")]), now.get("since") || "");
  options(part("split"), [["", `all ${told.examples} examples`], ...Object.entries(told.splits).map(([name, count]) => [name, `${name} (${count})`])], now.get("split") || "");
  options(part("file"), (told.files || []).map((each) => [each, each]), told.file);
  for (const name of ["yes", "since", "file"]) part(name).parentElement.hidden = blind || !told.file;
  part("split").parentElement.hidden = blind || !Object.keys(told.splits).length;
  part("model").textContent = blind ? "" : told.judge || "";
  part("clear").hidden = blind || !["split", ...TOGGLES, "yes", "since"].some((name) => now.get(name));
  part("who").hidden = part("one").hidden = !labelling();
  if (document.activeElement !== part("rater")) part("rater").value = labelling()?.rater || "";
  part("one").setAttribute("aria-pressed", String(blind));
}

function side(value, who) {
  if (value === null) return null;
  const tag = make("span", `${who} ${value ? "✓" : "✗"}`, `tag ${value ? "pass" : "fail"}`);
  tag.setAttribute("aria-label", `${who}: ${value ? "pass" : "fail"}`);
  tag.setAttribute("role", "img");
  return tag;
}

function drawList() {
  part("total").textContent = told.total ? `${told.total} of ${told.examples} examples` : "No example passes these filters.";
  part("list").start = told.start + 1;
  part("list").replaceChildren(...told.rows.map((each) => {
    const line = make("li"), link = make("a"), head = make("span", null, "head");
    link.href = moved({id: each.id, start: null});
    head.append(make("bdi", each.id, "name"), ...[side(each.passes, "judge"), side(each.people, "people"), each.mine ? make("span", "yours", "tag") : null].filter(Boolean));
    link.append(head, make("span", each.text, "text soft"));
    if (each.id === one?.item.id) link.setAttribute("aria-current", "true");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({id: each.id, start: null}).then(() => part("id").focus());
    });
    line.append(link);
    return line;
  }));
  part("earlier").hidden = !told.start;
  part("later").hidden = told.start + told.rows.length >= told.total;
  part("list").querySelector("[aria-current]")?.scrollIntoView({block: "nearest"});
}

function drawProgress() {
  const shown = single() && state;
  part("progress").hidden = !shown;
  if (!shown) return;
  const {count} = state, sides = steps().length ? ["in the better half", "in the worse half"] : ["pass", "fail"];
  part("progress").textContent = `${count.labelled} of ${state.outputs} by ${state.rater}: ${count.passed} ${sides[0]}, ${count.failed} ${sides[1]}`
    + (count.comments ? `, ${count.comments} with a comment` : "") + (count.skipped ? `, ${count.skipped} skipped` : "");
}

// These figures take a moment, so nothing waits for them.
async function drawFigures() {
  const mine = turn;
  const found = await ask("progress", {run: address().get("run") || ""});
  if (mine !== turn || !single()) return;
  part("enough").textContent = `${found.enough.sentence[0].toUpperCase()}${found.enough.sentence.slice(1)}.`;
  part("assumed").textContent = found.enough.assumed;
  drawAgreement(found.agreement);
}

// ---- one example ----------------------------------------------------------------------------------------------------
// An image of an example: its data, a link to it, or why it is not shown. Nothing is fetched.
function picture(kind, value) {
  if (kind === "note") return make("p", value, "soft");
  const shown = make(kind === "link" ? "a" : "img", kind === "link" ? value : undefined, "picture");
  if (kind === "link") Object.assign(shown, {href: value, rel: "noopener noreferrer", target: "_blank"});
  else Object.assign(shown, {src: value, alt: "Image of the example"});
  return shown;
}

function drawExample(fresh) {
  const shown = item();
  part("id").textContent = shown.id;
  part("split-of").textContent = one.split || "";
  part("split-of").hidden = !one.split;
  const why = state?.item?.id === shown.id ? state.item.why : "";
  part("why").textContent = why;
  part("why").hidden = !single() || !why;
  for (const name of ["input", "output", "context", "reference"]) {
    part(name).replaceChildren(shown[name] || "", ...(shown.images?.[name] || []).map(([kind, value]) => picture(kind, value)));
  }
  for (const name of ["context", "reference"]) part(`${name}-part`).hidden = !shown[name];
  part("previous").hidden = part("next").hidden = part("to-list").hidden = single();
  part("previous").disabled = !told.previous;
  part("next").disabled = !told.next;
  drawJudge();
  drawPeople();
  const can = Boolean(labelling());
  part("form").hidden = part("actions").hidden = !can;
  part("undo").disabled = Boolean(single() && state && !state.can_undo);
  if (fresh || !busy) {
    answers = {...(shown.human || {})};
    part("comment").value = shown.comment || "";
  }
  drawSteps();
  drawQuestions();
  drawAnswers();
  if (!fresh) return;
  if (document.activeElement === part("comment") || document.activeElement?.disabled) document.activeElement.blur();
  if (single()) window.scrollTo(0, 0);
}

function drawJudge() {
  const sides = one.judge;
  part("judge-part").hidden = !sides;
  if (sides) {
    const before = sides.before && sides.before.passes !== sides.passes ? ` It ${sides.before.passes ? "passed" : "failed"} by the earlier judge, score ${number(sides.before.score, false, 3)}.` : "";
    part("sides").replaceChildren(make("span", sides.passes ? "pass" : "fail", `tag ${sides.passes ? "pass" : "fail"}`), ` Its score is ${number(sides.score, false, 3)}; an output passes from ${number(sides.threshold)}.${before}`);
  }
  part("shut").hidden = !one.shut || (single() && Boolean(told.alone));
  part("shut").querySelector("span").textContent = one.shut || "";
  part("open-validation").hidden = one.split !== "validation" || single();
}

const yesNo = (answer) => (answer === null ? "no answer" : answer ? "yes" : "no");
function answered(found) {
  return found.p_yes === null || found.p_yes === undefined ? yesNo(found.answer) : `${found.answer === null ? "" : `${yesNo(found.answer)}, `}P(yes) ${number(found.p_yes)}`;
}

function verdictOf(found) {
  const box = make("div", null, "verdict");
  const against = found.answer !== null && (found.answer ? "yes" : "no") !== found.good;
  box.append(make("span", answered(found), `tag ${found.answer === null ? "" : against ? "fail" : "pass"}`));
  if (found.before && found.before.answer !== found.answer) box.append(make("span", `before: ${answered(found.before)}`, "soft"));
  const why = make("button", "Why?");
  why.dataset.why = found.id;
  why.setAttribute("aria-expanded", "false");
  why.setAttribute("aria-label", `Why is it asked: ${found.text}`);
  why.addEventListener("click", () => tell(found, why));
  box.append(why);
  const said = found.says || found.error;
  if (said) box.append(make("span", found.error && !found.says ? `Failed: ${said}` : said, "says"));
  return box;
}

function drawQuestions() {
  const mine = labelling()?.questions || [], verdicts = one.verdicts || [], seen = new Set(verdicts.map((each) => each.id));
  const rows = [...verdicts, ...mine.filter((each) => !seen.has(each.id))];
  part("questions-part").hidden = !rows.length;
  part("questions-how").hidden = !mine.length || steps().length > 0;
  part("questions").replaceChildren(...rows.map((each) => {
    const line = make("li"), place = mine.findIndex((other) => other.id === each.id);
    line.append(place >= 0 && place < 9 && !steps().length ? make("kbd", String(place + 1)) : make("span", "·", "soft"), make("span", each.text, "asked"));
    if (place >= 0) {
      const box = make("span", null, "mine");
      for (const value of ["yes", "no"]) {
        const button = make("button", value);
        Object.assign(button.dataset, {question: each.id, value});
        button.setAttribute("aria-label", `${each.text} You say ${value}`);
        button.addEventListener("click", () => answer(each.id, value === "yes"));
        box.append(button, " ");
      }
      line.append(box);
    }
    if (seen.has(each.id)) line.append(verdictOf(each));
    return line;
  }));
}

// From the comment to the question to the verdict.
async function tell(found, button) {
  const line = button.closest("li"), there = line.querySelector(".story");
  button.setAttribute("aria-expanded", String(!there));
  if (there) return there.remove();
  const box = make("div", null, "story");
  line.append(box);
  try {
    const story = await ask("why", {run: address().get("run"), question: found.id});
    box.append(...story.lines.map(([indent, text]) => make("p", text, indent ? "deeper" : "")));
    for (const id of story.examples) {
      const link = make("a", `Open ${id}`);
      link.href = moved({id, start: null});
      box.append(link, " ");
    }
    box.append(make("p", `Here the judge says: ${answered(found)}.${found.says ? ` ${found.says}` : ""}`));
  } catch (error) {
    box.append(make("p", error.message));
  }
}

// A rater's label first, then answers to questions.
function saidOf(human) {
  const whole = labelling()?.dimension, word = (name, value) =>
    typeof value !== "boolean" ? number(Number(value)) : name === whole ? (value ? "pass" : "fail") : value ? "yes" : "no";
  const names = Object.keys(human).sort((left, right) => (right === whole) - (left === whole));
  return names.map((name) => (name === whole ? word(name, human[name]) : `${name} ${word(name, human[name])}`)).join(", ") || "no label";
}

function drawPeople() {
  const rows = (one.people || []).map((each) => make("li", `${each.rater}: ${saidOf(each.human)}`));
  rows.push(...(one.comments || []).map((each) => {
    const line = make("li");
    line.append(make("q", each.text), each.rater ? make("span", ` ${each.rater}`, "soft") : "");
    for (const id of each.questions) {
      const button = make("button", `became ${id}`, "tag");
      button.addEventListener("click", () => [...part("questions").querySelectorAll("[data-why]")].find((why) => why.dataset.why === id)?.click());
      line.append(" ", button);
    }
    return line;
  }));
  if (one.hidden) rows.push(make("li", `${one.hidden} ${one.hidden === 1 ? "rater has" : "raters have"} labelled this; you see it once you have.`, "soft"));
  part("people-part").hidden = !rows.length;
  part("people").replaceChildren(...rows);
}

// ---- what a person does ---------------------------------------------------------------------------------------------
const toggle = (name) => !single() && !part(name).hidden && go({[name]: address().get(name) !== "1", id: null, start: null});
const turnTo = (id) => !single() && id && go({id, start: null});
const blind = () => told && !told.alone && labelling() && go({one: !single(), id: null, start: null});
const KEYS = {
  j: () => turnTo(told?.next),
  k: () => turnTo(told?.previous),
  l: () => !single() && go({id: null}),
  d: () => toggle("disagree"),
  r: () => toggle("raters"),
  n: () => toggle("unsure"),
  b: blind,
  p: () => steps().length || verdict(true),
  f: () => steps().length || verdict(false),
  s: () => act("skip"),
  u: () => act("undo"),
  c: () => part("comment").focus(),
  w: () => (document.activeElement.closest?.("li")?.querySelector("[data-why]") || part("questions").querySelector("[data-why]"))?.click(),
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
  if (event.target === part("rater") || event.target instanceof HTMLSelectElement) return;
  const walks = event.key === "j" || event.key === "k";
  if ((event.repeat && !walks) || event.ctrlKey || event.metaKey || event.altKey || !told) return;
  if (event.key === "Enter" && (event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement)) return;  // it works the button
  if (/^[0-9]$/.test(event.key) && steps().length) return step((Number(event.key) + 9) % 10);
  if (/^[1-9]$/.test(event.key)) return turnAnswer(Number(event.key) - 1);
  const does = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!does) return;
  event.preventDefault();
  does();
});
part("comment").addEventListener("input", keepDraft);
for (const [id, does] of Object.entries({
  pass: KEYS.p, fail: KEYS.f, save: neither, skip: KEYS.s, undo: KEYS.u, "undo-last": KEYS.u, one: blind, "to-list": KEYS.l, previous: KEYS.k, next: KEYS.j,
  disagree: KEYS.d, raters: KEYS.r, unsure: KEYS.n,
  clear: () => go({...Object.fromEntries([...TOGGLES, "yes", "since", "split"].map((name) => [name, null])), id: null, start: null}),
  earlier: () => go({id: null, start: Math.max(0, told.start - 100)}),
  later: () => go({id: null, start: told.start + 100}),
  "open-validation": () => ask("look", null, {run: address().get("run"), file: told.file}).then(look, (error) => problem(error.message)),
})) part(id).addEventListener("click", does);
for (const name of ["yes", "since", "split", "file"]) part(name).addEventListener("change", () => go({[name]: part(name).value, start: null, ...(name === "file" ? {} : {id: null})}));
part("rater").addEventListener("change", async () => {
  await keepNow();
  localStorage.setItem("rater", part("rater").value.trim());
  told = null;
  await look();
});
window.addEventListener("popstate", look);
window.addEventListener("beforeunload", (event) => {
  if (timer && typed() && !busy) event.preventDefault();
});
look().then(() => {
  if (!told || told.alone) return;
  ask("runs").then((found) => {
    others = found.runs.filter((each) => each.judge).map((each) => each.run);
    drawFilters();
  }, (error) => problem(error.message));
});
