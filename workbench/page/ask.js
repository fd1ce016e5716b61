"use strict";
// judge.js has the judge and how it is edited; this asks its model a further question, and puts it into the table.
const asking = part("ask"), wording = (name) => asking.elements.namedItem(name);
let mayAsk = "";

function choice(value, text) {
  const made = make("option", text);
  made.value = value;
  return made;
}

function drawAsk() {
  for (const each of [part("validation").parentElement, part("test"), part("shut")]) each.hidden = !judge.measured;
  part("ask-part").hidden = Boolean(judge.cannot_ask);
  part("cannot-ask").hidden = !judge.cannot_ask || !judge.measured;  // beside the figures it is said already
  part("cannot-ask").textContent = judge.cannot_ask || "";
  const own = judge.questions.filter((each) => each.kind === "question" && !["reworded", "added"].includes(each.from));
  wording("instead_of").replaceChildren(choice("", "none: a further question"), ...own.map((each) => choice(each.id, `${each.id}: ${each.text}`)));
  wording("dimension").replaceChildren(...judge.dimensions.map((each) => choice(each, each)));
}

function wordingMessage() {
  const made = {text: wording("text").value.trim(), instead_of: wording("instead_of").value || null};
  if (!made.instead_of) Object.assign(made, {dimension: wording("dimension").value, good: wording("good").value});
  return {run: judge.run, file: judge.file, wording: made};
}

function sayAsked(text, wrong) {
  part("ask-said").textContent = text;
  part("ask-said").className = wrong ? "wide refused" : "wide";
}

// what was estimated is not what is written any more
function unsureOfIt() {
  mayAsk = "";
  part("ask-it").disabled = true;
  sayAsked("");
}

async function estimateIt() {
  const given = wordingMessage();
  unsureOfIt();
  try {
    const told = await ask("ask/estimate", null, given);
    if (JSON.stringify(given) !== JSON.stringify(wordingMessage())) return;
    mayAsk = JSON.stringify(given);
    part("ask-it").disabled = false;
    sayAsked(`Asking ${told.ids.join(", ")} on ${told.split} takes ${told.said}.`);
  } catch (error) {
    sayAsked(error.message, true);
  }
}

async function askIt() {
  part("ask-it").disabled = true;
  sayAsked("The judge is asked. It goes on when you close the page.");
  try {
    const told = await ask("ask/development", null, JSON.parse(mayAsk));
    judge = await ask("judge", {run: judge.run, file: judge.file});
    const here = new Set(edit.questions.map((each) => each.id));
    edit.questions.push(...copy(judge.edit.questions.filter((each) => !here.has(each.id))));
    for (const each of edit.questions) {
      if (each.id === told.id) each.on = true;
      if (each.id === told.instead_of) each.on = false;
    }
    drawQuestions();
    drawAsk();
    asking.reset();
    changed();
    unsureOfIt();
    sayAsked(`${told.id} is in the table${told.instead_of ? `, and ${told.instead_of} is off` : ""}.`);
  } catch (error) {
    sayAsked(error.message, true);
    part("ask-it").disabled = false;
  }
}

// In place of figures on validation, where a question that is on was not asked there.
function askedOnValidation() {
  const box = make("div", null, "buttons"), button = make("button", "What would it take to ask there?"), said = make("span", null, "soft");
  said.setAttribute("role", "status");
  button.type = "button";
  let estimated = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      if (estimated) {
        said.textContent = "The judge is asked.";
        await ask("ask/validation", null, body(true));
        return refresh();
      }
      const told = await ask("ask/validation-estimate", null, body(true));
      estimated = true;
      said.textContent = `${told.said}. It counts as a look.`;
      button.textContent = "Ask on validation";
    } catch (error) {
      said.textContent = error.message;
    }
    button.disabled = false;
    return null;
  });
  box.append(button, said);
  return box;
}

asking.addEventListener("input", (event) => {
  if (event.target.name === "instead_of") {
    const old = wording("instead_of").value;
    if (old) wording("text").value = byId(old).text;
    for (const each of asking.querySelectorAll(".further")) each.hidden = Boolean(old);
  }
  unsureOfIt();
});
asking.addEventListener("submit", (event) => {
  event.preventDefault();
  estimateIt();
});
part("ask-it").addEventListener("click", askIt);
