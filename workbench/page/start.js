"use strict";
const EVERY = 1000;
const COMMANDS = {
  align: "Have a judge learn from what people said of outputs",
  migrate: "Move a prompt to another model, with a certificate",
  tune: "Improve a prompt that writes",
};
const NAMES = {
  data: "Data", checklist: "Checklist", prompt: "Prompt", model: "Model that judges", from: "Earlier run to go on from",
  source: "The old model", target: "The new model", judge: "Judge: a model, or a run", requirements: "Requirements", generator: "Model that writes",
};
const HINTS = {source: "provider/model, or recorded", model: "provider/model", target: "provider/model", generator: "provider/model", judge: "provider/model, or a run's name"};
const form = part("form"), on = part("on");
let offered = null, watched = asked.get("run"), timer = null;

const field = (name) => form.elements.namedItem(name);
const chosen = () => field("command").value;

function option(value, text) {
  const made = make("option", text ?? value);
  made.value = value;
  return made;
}

function input(name, kind) {
  const label = make("label", NAMES[name] ?? name), free = kind === "model" || kind === "judge";
  const made = make(free ? "input" : "select");
  made.name = `input-${name}`;
  if (free) {
    Object.assign(made, {type: "text", placeholder: HINTS[name] ?? "", autocomplete: "off", spellcheck: false});
    const list = make("datalist");
    list.id = `list-${name}`;
    list.append(...(offered.choices[kind] ?? []).map((each) => option(each)));
    made.setAttribute("list", list.id);
    label.append(made, list);
  } else {
    made.append(option("", "as in the settings file, or none"), ...offered.choices[kind].map((each) => option(each)));
    label.append(made);
  }
  return label;
}

function drawFields() {
  part("fields").replaceChildren(...Object.entries(offered.fields[chosen()]).map(([name, kind]) => input(name, kind)));
  part("yes").hidden = chosen() !== "migrate";
  unsure();
}

// what was estimated is not what is chosen any more
function unsure() {
  part("begin").disabled = true;
  part("said").hidden = true;
}

function limits(from) {
  const found = {};
  for (const name of ["call_budget", "cost_budget"]) {
    const given = from.elements.namedItem(name).value;
    if (given !== "") found[name] = Number(given);
  }
  if (from.elements.namedItem("yes").checked) found.yes = true;
  return found;
}

function message() {
  const inputs = {};
  for (const name of Object.keys(offered.fields[chosen()])) {
    const given = field(`input-${name}`).value.trim();
    if (given) inputs[name] = given;
  }
  const made = {command: chosen(), run: field("run").value.trim(), inputs, ...limits(form)};
  if (chosen() !== "migrate") delete made.yes;
  if (field("settings").value) made.settings = field("settings").value;
  return made;
}

function say(text, wrong) {
  part("said").textContent = text;
  part("said").className = wrong ? "refused" : "";
  part("said").hidden = false;
}

async function estimate() {
  part("estimate").disabled = true;
  say("Looking at it …");
  try {
    const before = JSON.stringify(message()), told = await ask("start/estimate", null, JSON.parse(before));
    if (before !== JSON.stringify(message())) return unsure();
    say(told.said);
    part("begin").disabled = false;
    part("begin").focus();
  } catch (error) {
    say(error.message, true);
  } finally {
    part("estimate").disabled = false;
  }
}

async function begin() {
  const capped = message();
  part("begin").disabled = true;
  try {
    show(await ask("start/begin", null, capped));
    unsure();
    part("progress").scrollIntoView();
  } catch (error) {
    say(error.message, true);
    part("begin").disabled = false;
  }
}

function show(told) {
  watched = told.run;
  history.replaceState(null, "", `start?${new URLSearchParams({run: watched})}`);
  part("progress").hidden = false;
  part("new-name").classList.remove("hidden");
  part("progress-name").textContent = watched;
  const ended = told.finished ? "finished" : told.code ? `ended with exit code ${told.code}` : "stopped";
  part("line").textContent = `${told.works ? "works" : ended}${told.line ? ` · ${told.line}` : ""}`;
  part("stop").hidden = !told.works;
  on.hidden = told.works || told.finished || !told.line;
  for (const [name, page, there] of [["report", "report", told.finished], ["judge", "judge", told.finished && told.judge]]) {
    part(name).hidden = !there;
    part(name).href = `${page}?${new URLSearchParams({run: watched})}`;
  }
  const log = part("log"), below = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  if (log.textContent !== told.log) {
    log.textContent = told.log;
    if (below) log.scrollTop = log.scrollHeight;
  }
  clearTimeout(timer);
  if (told.works) timer = setTimeout(look, EVERY);
}

async function look() {
  try {
    show(await ask("start/state", null, {run: watched}));
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

async function act(name, body) {
  try {
    show(await ask(`start/${name}`, null, body));
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

function list() {
  const rows = [...offered.running, ...offered.stopped].filter((each) => each !== watched);
  part("others").hidden = !rows.length;
  part("unfinished").replaceChildren(...rows.map((run) => {
    const item = make("li"), link = make("a", run);
    link.href = `start?${new URLSearchParams({run})}`;
    item.append(link, make("span", offered.running.includes(run) ? " works" : " stopped", "soft"));
    return item;
  }));
}

function ready(told) {
  offered = told;
  for (const [name, text] of Object.entries(COMMANDS)) {
    const label = make("label"), made = make("input"), about = make("span", `${text} `);
    Object.assign(made, {type: "radio", name: "command", value: name, checked: name === "align"});
    about.append(make("span", name, "soft"));
    label.append(made, about);
    made.addEventListener("change", drawFields);
    part("commands").append(label);
  }
  field("settings").append(option("", "none"), ...told.choices.settings.map((each) => option(each)));
  field("settings").value = told.settings ?? "";
  part("new").hidden = false;
  drawFields();
  list();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  estimate();
});
form.addEventListener("input", (event) => {
  if (!["call_budget", "cost_budget", "yes"].includes(event.target.name)) unsure();
});
on.addEventListener("submit", (event) => {
  event.preventDefault();
  act("resume", {run: watched, ...limits(on)});
});
part("begin").addEventListener("click", begin);
part("stop").addEventListener("click", () => act("stop", {run: watched}));
ask("start/choices", null, {}).then(ready, (error) => problem(error.message));
if (watched) look();
