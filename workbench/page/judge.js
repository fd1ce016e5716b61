"use strict";
const AFTER = 60;
const NAMES = {kappa: "Cohen's kappa", true_positive_rate: "True positive rate", true_negative_rate: "True negative rate", spearman: "Spearman"};
const FLOOR = {kappa: -1, spearman: -1};
let judge = null, edit = null, timer = null, busy = false, again = false;

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const copy = (value) => JSON.parse(JSON.stringify(value));
const body = (validation) => ({run: judge.run, file: judge.file, edit, validation: Boolean(validation)});
const byId = (id) => judge.questions.find((each) => each.id === id);

// the address holds the change, so that it can be shared and the back button has something to go back to
function remember() {
  history.replaceState(null, "", same(edit, judge.edit) ? location.pathname + location.search : `#${encodeURIComponent(JSON.stringify(edit))}`);
}

function recalled() {
  try {
    const told = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    const known = new Set(judge.questions.map((each) => each.id));
    const given = new Set(told.questions.map((each) => each.id));
    told.questions.push(...copy(judge.edit.questions.filter((each) => !given.has(each.id))));  // asked since
    if (told.questions.length === known.size && told.questions.every((each) => known.has(each.id))) return told;
  } catch { /* an address without a change, or one that somebody cut */ }
  return copy(judge.edit);
}

function changed() {
  remember();
  part("verdict").textContent = "";
  part("verdict").className = "";
  clearTimeout(timer);
  timer = setTimeout(refresh, AFTER);
}

async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  try {
    show(await ask("figures", null, body(part("validation").checked)));
    problem("");
  } catch (error) {
    problem(error.message);
  } finally {
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

function origin(question) {
  const box = make("div", null, "soft");
  box.append(make("bdi", `${question.id} · ${question.dimension} · ${question.kind === "check" ? "a check · " : ""}from ${question.from}`));
  for (const each of question.comments.slice(0, 3)) box.append(make("span", `“${each}”`, "comment"));
  return box;
}

function move(place, by) {
  const target = place + by;
  if (target < 0 || target >= edit.questions.length) return;
  const [each] = edit.questions.splice(place, 1);
  edit.questions.splice(target, 0, each);
  drawQuestions();
  part("questions").rows[target].querySelector("input").focus();
  changed();
}

function line(each, place) {
  const question = byId(each.id), on = make("input"), weight = make("input"), flip = make("button"), moves = make("span", null, "moves");
  Object.assign(on, {type: "checkbox", checked: each.on});
  on.setAttribute("aria-label", `Ask ${question.text}`);
  Object.assign(weight, {type: "number", min: 0, step: "any", value: each.weight, disabled: !judge.can_weigh});
  weight.setAttribute("aria-label", `Weight of ${question.text}`);
  flip.textContent = each.good;
  flip.disabled = !judge.can_flip;
  flip.title = judge.can_flip ? "Turn the question round" : "The judge's calibration was fitted for this answer";
  flip.setAttribute("aria-label", `${each.good} speaks for the output: ${question.text}`);
  for (const [text, by, name] of [["↑", -1, "up"], ["↓", 1, "down"]]) {
    const button = make("button", text);
    button.setAttribute("aria-label", `Move ${name}: ${question.text}`);
    button.disabled = place + by < 0 || place + by >= edit.questions.length;
    button.addEventListener("click", () => move(place, by));
    moves.append(button);
  }
  const made = row(
    cell("", on, " ", moves),
    cell("", make("span", question.text, "question"), origin(question)),
    cell("Speaks for the output", flip), cell("Weight", weight),
    cell("Agreement", drawn(question.agreement, -1, 1, true)), cell("Worth", drawn(question.worth, -1, 1, true)),
  );
  made.classList.toggle("off", !each.on);
  on.addEventListener("change", () => {
    each.on = on.checked;
    made.classList.toggle("off", !each.on);
    changed();
  });
  flip.addEventListener("click", () => {
    each.good = each.good === "yes" ? "no" : "yes";
    flip.textContent = each.good;
    flip.setAttribute("aria-label", `${each.good} speaks for the output: ${question.text}`);
    changed();
  });
  weight.addEventListener("input", () => {
    if (weight.value === "" || !weight.validity.valid) return;
    each.weight = Number(weight.value);
    changed();
  });
  made.addEventListener("keydown", (event) => {
    const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!event.altKey || !by) return;
    event.preventDefault();
    move(edit.questions.indexOf(each), by);
  });
  return made;
}

const drawQuestions = () => part("questions").replaceChildren(...edit.questions.map(line));

function drawThreshold() {
  part("threshold").value = part("threshold-number").value = edit.threshold;
}

function confusion(found) {
  const now = found.now.confusion, was = found.before?.confusion;
  if (!now) return [];
  const text = (key) => was && was[key] !== now[key] ? `${was[key]} → ${now[key]}` : String(now[key]);
  const made = make("table", null, "confusion");
  made.append(make("caption", "Confusion matrix", "hidden"));
  const head = make("tr");
  for (const each of ["", "People passed", "People failed"]) head.append(make(each ? "th" : "td", each));
  made.append(head);
  for (const [name, cells] of [["The judge passes", ["true_positive", "false_positive"]], ["The judge fails", ["false_negative", "true_negative"]]]) {
    const each = make("tr");
    each.append(make("th", name), ...cells.map((key) => make("td", text(key))));
    made.append(each);
  }
  return [made];
}

function split(name, found) {
  const box = make("section"), title = make("h2", `${name} `);
  if (found.examples) title.append(make("span", `${found.n} of ${found.examples} outputs with a score and people's`, "soft"));
  box.append(title);
  if (found.reason) {
    box.append(make("p", found.reason, "soft"), ...(found.unasked ? [askedOnValidation()] : []));
    return box;
  }
  const table = make("table"), head = make("tr");
  for (const each of ["", ...(found.before ? ["Before", "Now", "Change"] : ["Now"])]) head.append(make(each ? "th" : "td", each));
  table.append(head);
  for (const [key, title] of Object.entries(NAMES)) {
    const now = found.now[key];
    if (!now) continue;
    const each = make("tr"), add = (content) => {
      const one = make("td");
      one.append(content);
      each.append(one);
    };
    each.append(make("th", title));
    if (found.before) add(make("span", said(found.before[key]), "soft"));
    add(drawn(now, FLOOR[key] ?? 0, 1));
    if (found.before) add(found.difference[key] ? drawn(found.difference[key], -1, 1, true) : make("span", ""));
    table.append(each);
  }
  box.append(table, ...confusion(found));
  return box;
}

function people(value) {
  return value === null ? "said nothing" : value === 1 ? "passed it" : value === 0 ? "failed it" : number(value);
}

function drawMoved(found) {
  part("moved-part").hidden = !found;
  if (!found) return;
  part("moved-said").textContent = `${found.count} on development${found.count > found.listed.length ? `; the first ${found.listed.length} are listed` : ""}.`;
  part("moved").replaceChildren(...found.listed.map((each) => row(
    cell("", toExample(judge.run, each.id, judge.file)), cell("Score", make("span", `${number(each.before, false, 3)} → ${number(each.after, false, 3)}`)),
    cell("The judge now", make("span", each.passes ? "passes it" : "fails it")), cell("People", make("span", people(each.people))),
  )));
}

function show(told) {
  part("splits").replaceChildren(split("Development", told.development), ...(told.validation ? [split("Validation", told.validation)] : []));
  part("changes").textContent = told.what?.length ? `Changed: ${told.what.join("; ")}.` : "Nothing is changed.";
  part("looks").textContent = `${told.looks} changed ${told.looks === 1 ? "judge was" : "judges were"} looked at there so far; each counts.`;
  for (const name of ["test", "save", "undo"]) part(name).disabled = !told.what?.length;
  drawMoved(told.development.moved);
}

function drawHistory() {
  part("history-part").hidden = !judge.history.length;
  part("history").replaceChildren(...judge.history.map((each) => {
    const item = make("li", `${each.by}, ${new Date(each.time).toLocaleString()}: ${each.what.join("; ")}. `);
    if (each.shaped_on_validation) item.append(make("span", `shaped on validation, ${each.looks} looks`, "tag warning"));
    return item;
  }));
}

function begin(told) {
  judge = told;
  edit = recalled();
  document.title = `Judge of ${told.run} · askance`;
  part("run").textContent = told.run;
  part("to-disagreements").href = `disagreements?${new URLSearchParams({run: told.run})}`;
  part("to-examples").href = `examples?${new URLSearchParams({run: told.run, file: told.file})}`;
  part("model").textContent = told.model;
  part("task").textContent = told.task;
  part("shut").textContent = told.test;
  part("warnings").replaceChildren(...told.warnings.map((each) => make("p", each, "warning")));
  part("file").replaceChildren(...told.files.map((each) => {
    const option = make("option", each);
    Object.assign(option, {value: each, selected: each === told.file});
    return option;
  }));
  part("bench").hidden = false;
  drawQuestions();
  drawThreshold();
  drawHistory();
  show({...told, what: []});
  drawAsk();
  if (!same(edit, judge.edit)) refresh();
}

async function act(name, does) {
  try {
    does(await ask(name, null, body(part("validation").checked)));
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

part("file").addEventListener("change", () => {
  location.href = `judge?${new URLSearchParams({run: judge.run, file: part("file").value})}`;
});
for (const id of ["threshold", "threshold-number"]) {
  part(id).addEventListener("input", () => {
    if (part(id).value === "" || !part(id).validity.valid) return;
    edit.threshold = Number(part(id).value);
    part(id === "threshold" ? "threshold-number" : "threshold").value = edit.threshold;
    changed();
  });
}
part("validation").addEventListener("change", refresh);
part("undo").addEventListener("click", () => {
  edit = copy(judge.edit);
  drawQuestions();
  drawThreshold();
  changed();
});
part("test").addEventListener("click", () => act("test", (told) => {
  part("verdict").className = told.accepted ? "accepted" : "refused";
  part("verdict").textContent = `${told.accepted ? "Accepted" : "Not accepted"} at look ${told.look}: ${told.reason}.`;
  refresh();
}));
part("save").addEventListener("click", () => act("save", (told) => {
  part("verdict").className = "accepted";
  part("verdict").textContent = `Saved as ${told.path}. Use it: askance evaluate DATA --judge ${told.path}`;
  if (![...part("file").options].some((each) => each.value === told.file)) {
    const option = make("option", told.file);
    option.value = told.file;
    part("file").append(option);
  }
}));
ask("judge", {run: asked.get("run") || "", file: asked.get("file") || "judge.yaml"}).then(begin, (error) => problem(error.message));
