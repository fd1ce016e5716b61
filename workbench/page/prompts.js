"use strict";
const SHOWS = {worse: "Got worse", failing: "Fail a question", all: "All"};
const run = asked.get("run") || "";
let told = null, drawing = 0;
const vetoed = new Set(asked.getAll("veto").map(Number));

const count = (many, one, several) => `${many.toLocaleString()} ${many === 1 ? one : several || `${one}s`}`;
const state = () => {
  const query = new URLSearchParams(location.search);
  return {show: query.get("show"), start: Number(query.get("start")) || 0, target: query.get("target") || ""};
};

function address(to) {
  const query = new URLSearchParams({run});
  for (const [name, value] of Object.entries(to)) if (value) query.append(name, value);
  for (const each of to.target === state().target ? [...vetoed].sort((a, b) => a - b) : []) query.append("veto", each);
  return `prompts?${query}`;
}

function go(text, to, does) {
  const made = make("a", text);
  made.href = address(to);
  if (does) made.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.pushState(null, "", address(to));
    does();
  });
  return made;
}

// --- the certificate ------------------------------------------------------------------------------------------------

function table(name, heads, rows) {
  const made = make("table"), head = make("tr"), box = make("div", null, "scroll");
  for (const each of heads) {
    const one = make("th", each);
    one.scope = "col";
    head.append(one);
  }
  made.append(head, ...rows.map((cells) => {
    const line = make("tr");
    line.append(...cells.map((each, place) => {
      const one = make(place ? "td" : "th");
      if (!place) one.scope = "row";
      one.append(each ?? "–");
      return one;
    }));
    return line;
  }));
  box.append(made);
  Object.assign(box, {tabIndex: 0});
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  return box;
}

const share = (value) => value === null || value === undefined ? "–" : number(value);
const figure = (value) => value && value.value !== null ? said(value) : "–";

function certified(each) {
  const made = make("article"), title = make("h3"), found = told.certificate;
  title.append(make("bdi", each.target), " ", make("span", each.word, `tag ${each.decision}`));
  const reach = 1.2 * Math.max(found.max_loss, ...["low", "high", "value"].map((name) => Math.abs(each.difference[name] ?? 0)));
  const drawn_ = drawn(each.difference, -reach, reach, true), left = make("p");
  drawn_.prepend(make("span", "New less old: "));
  left.append(each.regressions ? go(`${count(each.regressions, "regression")} left`, {target: each.target, show: "worse"}) : make("span", "No regression is left"), ` · ${count(each.gains, "gain")}`);
  made.append(title, make("p", each.reason), drawn_, make("p", `One-sided limits; the most that may be lost is ${number(found.max_loss)}.`, "soft"));
  made.append(table(`${each.target}, figures`, ["On test", "Old", "Target before", "Target after"], each.figures.map((row) => [row.name, figure(row.old), figure(row.before), figure(row.after)])), left);
  if (each.proved.length) made.append(make("p", `Proved worse: ${each.proved.join("; ")}`));
  if (each.requirements.length) {
    const box = make("details");
    box.append(make("summary", "By requirement, what lost most first"), table(`${each.target}, by requirement`, ["Requirement", "Old", "Before", "After"], each.requirements.map((row) => [row.text, share(row.old), share(row.before), share(row.after)])));
    made.append(box);
  }
  return made;
}

function drawAnswer() {
  part("answer-title").textContent = `${told.answer}.`.replace(/\.\.$/, ".");
  part("answer-said").textContent = told.reason ? told.reason.replace(part("answer-title").textContent, "").trim() : "";
  part("certificate").replaceChildren(...(told.certificate?.targets || []).map(certified));
}

// --- the prompt -----------------------------------------------------------------------------------------------------

// Words of the start that a change took away come back where it is taken out; words that it brought go.
function stretch(each) {
  const by = vetoed.has(each.by), gone = each.gone && !vetoed.has(each.gone);
  if (each.by && each.gone && (by || gone)) return null;  // neither at the start nor in the prompt
  if (each.by) return marked(by ? "del" : "ins", each, each.by, by ? "out" : "");
  if (each.gone) return marked(gone ? "del" : "ins", each, each.gone, gone ? "" : "back");
  return make("span", each.text);
}

function marked(tag, each, change, name) {
  const made = make(tag, each.text, name);
  made.dataset.change = change;
  return made;
}

function drawText() {
  part("text").replaceChildren(...told.stretches.map(stretch).filter(Boolean));
}

// With a change go those that stand on it; a change that is kept again brings back what it stands on.
function veto(number, out) {
  if (out) vetoed.add(number);
  else vetoed.delete(number);
  const also = told.changes.filter((each) => out ? each.needs.includes(number) && !vetoed.has(each.number) : told.changes.find((one) => one.number === number).needs.includes(each.number) && vetoed.has(each.number));
  for (const each of also) veto(each.number, out);
}

function changed() {
  history.replaceState(null, "", address(state()));
  part("verdict").textContent = "";
  part("verdict").className = "";
  drawText();
  for (const item of part("changes").children) {
    const out = vetoed.has(Number(item.dataset.change));
    item.classList.toggle("out", out);
    item.querySelector("input").checked = !out;
  }
  part("save").disabled = part("undo").disabled = !vetoed.size;
  part("other").hidden = !vetoed.size;
  part("other").textContent = `${count(vetoed.size, "change is", "changes are")} taken out. The answer, the figures and the outputs on this page are of the run's own prompt: nothing is known yet of yours.`;
  part("prompt-said").textContent = told.changes.length ? `${count(told.changes.length, "change")}, ${told.changes.length - vetoed.size} kept` : "the run kept the prompt that it began with";
}

function change(each) {
  const item = make("li"), box = make("input"), about = make("div"), label = make("label", null, "words");
  item.dataset.change = each.number;
  Object.assign(box, {type: "checkbox", checked: true, id: `change-${each.number}`});
  label.htmlFor = box.id;
  label.append(make("span", `Keep change ${each.number}: `, "hidden"), each.words);
  about.append(label);
  for (const cause of each.causes) about.append(make("p", [cause.requirement ? `for “${cause.requirement}”` : "", cause.text, cause.failures].filter(Boolean).join(" · "), "soft"));
  for (const effect of each.effects) about.append(make("p", effect, "soft"));
  if (each.needs.length) about.append(make("p", `stands on change ${each.needs.join(", ")}`, "soft"));
  item.append(box, about);
  box.addEventListener("change", () => {
    veto(each.number, !box.checked);
    changed();
  });
  for (const [when, on] of [["mouseenter", true], ["mouseleave", false], ["focusin", true], ["focusout", false]]) {
    item.addEventListener(when, () => {
      for (const one of part("text").querySelectorAll(`[data-change="${each.number}"]`)) one.classList.toggle("here", on);
    });
  }
  return item;
}

function drawHistory() {
  part("history-part").hidden = !told.history.length;
  part("history").replaceChildren(...told.history.map((each) => make("li", `${each.file} · ${each.by}, ${new Date(each.time).toLocaleString()}: ${each.what.join("; ")}`)));
}

async function save() {
  try {
    const saved = await ask("save_prompt", null, {run, target: told.target, of: told.of, vetoed: [...vetoed]});
    told.history = saved.history;
    drawHistory();
    part("verdict").className = "accepted";
    part("verdict").textContent = `Saved as ${saved.path}. No figure is known of it: measure it on inputs that nobody looked at.`;
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

// --- outputs --------------------------------------------------------------------------------------------------------

function pieces(name, found) {
  const box = make("div"), text = make("p", null, "text");
  text.append(...found.map(([kind, words]) => make({removed: "del", added: "ins"}[kind] || "span", words)));
  if (!found.length) text.append(make("span", "no output", "soft"));
  box.append(make("p", name, "soft"), text);
  return box;
}

function drawCase(each) {
  const made = make("article"), title = make("h3"), fails = make("ul", null, "fails"), input = make("details"), sides = make("div", null, "sides");
  title.append(make("bdi", each.id, "name"));
  fails.append(...each.failed.map((one) => {
    const item = make("li");
    item.append(make("span", one.worse ? "got worse" : "still fails", one.worse ? "tag worse" : "tag"), ` ${one.text}`);
    if (one.why) item.append(make("span", ` · ${one.why}`, "soft"));
    return item;
  }));
  input.append(make("summary", "Input"), make("p", each.input, "text"));
  sides.append(pieces("Old", each.old), pieces("New", each.new));
  made.append(title, ...(each.failed.length ? [fails] : []), input, sides);
  if (each.not_compared) made.append(make("p", `Words after the first ${each.not_compared.toLocaleString()} characters are not compared.`, "soft"));
  if (each.left_out) made.append(make("p", `${each.left_out.toLocaleString()} characters are not shown.`, "soft"));
  return made;
}

async function drawOutputs(moved) {
  const now = state(), mine = ++drawing, counts = told.outputs;
  const show = now.show in SHOWS ? now.show : Object.keys(SHOWS).find((name) => counts[name]) || "all";
  part("shows").replaceChildren(...Object.entries(SHOWS).map(([name, text]) => {
    const made = go(`${text} (${counts[name].toLocaleString()})`, {...now, show: name, start: 0}, () => drawOutputs(true));
    if (name === show) made.setAttribute("aria-current", "page");
    return made;
  }));
  const whose = told.split === "test" ? "Test outputs: whoever changes the prompt by them measures it on other inputs." : "Development outputs: the test outputs stay shut.";
  part("outputs-said").textContent = told.is_judge ? "A judge writes no outputs; where it and people differ is on the page Disagreements." : `${whose} Questions that the new output fails come first; words that differ are marked.`;
  try {
    const found = await ask("prompt_outputs", {run, target: told.target, show, start: now.start});
    if (mine !== drawing) return;
    const last = now.start + found.outputs.length;
    part("cases").replaceChildren(...found.outputs.map(drawCase));
    for (const [id, text, to, there] of [["before", "Earlier", now.start - found.at_once, now.start > 0], ["after", "Further", now.start + found.at_once, last < found.count]]) {
      const link = go(text, {...now, show, start: Math.max(0, to)}, () => drawOutputs(true));
      link.id = id;
      link.hidden = !there;
      part(id).replaceWith(link);
    }
    if (moved) part("outputs-title").focus();
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

function begin(found) {
  told = found;
  document.title = `Prompt of ${told.run} · askance`;
  part("run").textContent = told.run;
  part("report").href = `report?${new URLSearchParams({run})}`;
  part("targets").hidden = told.targets.length < 2;
  part("targets").replaceChildren(...told.targets.map((each) => {
    const made = go(each, {target: each});
    if (each === told.target) made.setAttribute("aria-current", "page");
    return made;
  }));
  part("all").hidden = false;
  for (const each of [...vetoed]) if (told.changes.some((one) => one.number === each)) veto(each, true);
  else vetoed.delete(each);
  drawAnswer();
  part("changes").replaceChildren(...told.changes.map(change));
  changed();
  drawHistory();
  drawOutputs(false);
}

part("save").addEventListener("click", save);
part("undo").addEventListener("click", () => {
  vetoed.clear();
  changed();
  part("changes").querySelector("input")?.focus();
});
addEventListener("popstate", () => {
  vetoed.clear();
  for (const each of new URLSearchParams(location.search).getAll("veto")) veto(Number(each), true);
  changed();
  drawOutputs(false);
});
ask("prompts", {run, target: state().target}).then(begin, (error) => problem(error.message));
