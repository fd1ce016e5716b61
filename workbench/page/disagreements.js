"use strict";
const TABS = {question: "By question", comment: "By comment", wanted: "Candidate questions", labels: "Further labels"};
const OFF = {lenient: "the judge is kinder", strict: "the judge is stricter"};
const run = asked.get("run") || "";
let told = null, groups = null, labels = null, drawnTab = null, drawing = 0;
const remarks = new Map();  // boxes of each comment on the page

const count = (many, one, several) => `${many.toLocaleString()} ${many === 1 ? one : several || `${one}s`}`;
const state = () => {
  const query = new URLSearchParams(location.search);
  return {by: query.get("by") in TABS ? query.get("by") : "question", group: query.get("group"), start: Number(query.get("start")) || 0};
};
const byText = (text) => told.wanted.find((each) => each.comment === text);
const question = (id) => told.questions.find((each) => each.id === id)?.text || id;

// A link that the page follows by itself: the address changes, so that it can be shared and gone back from.
function go(text, to, name) {
  const made = make("a", text, name);
  aim(made, to);
  made.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.pushState(null, "", made.href);
    draw(true);
  });
  return made;
}

function aim(link, to) {
  const query = new URLSearchParams({run, ...Object.fromEntries(Object.entries(to).filter(([, value]) => value))});
  link.href = `disagreements?${query}`;
}

function drawTabs(by) {
  const many = {question: null, comment: told.comments, wanted: told.wanted.length, labels: null};
  part("tabs").replaceChildren(...Object.entries(TABS).map(([name, text]) => {
    const made = go(many[name] === null ? text : `${text} (${many[name]})`, {by: name});
    if (name === by) made.setAttribute("aria-current", "page");
    return made;
  }));
}

async function want(comment, text) {
  try {
    told.wanted = (await ask("want", null, {run, comment, text})).wanted;
    problem("");
    const kept = byText(comment);
    part("done").textContent = kept ? `The next run tries “${kept.text}”` : "It is no candidate question any more.";
  } catch (error) {
    problem(error.message);
    return;
  }
  const {by} = state();
  drawTabs(by);
  for (const box of remarks.get(comment) || []) drawRemark(box, comment);
  if (by === "wanted") drawWanted();
}

function drawRemark(box, text) {
  const kept = byText(text), had = box.contains(document.activeElement);
  box.replaceChildren(make("q", text));
  if (kept) box.append(make("span", "candidate", "tag joined"), go("Reword", {by: "wanted"}));
  else {
    const button = make("button", "Make it a candidate question");
    button.type = "button";
    button.setAttribute("aria-label", `Make it a candidate question: ${text}`);
    button.addEventListener("click", () => want(text, null));
    box.append(button);
  }
  if (had) box.lastChild.focus();
}

function remark(text) {
  const box = make("div", null, "remark");
  remarks.set(text, [...(remarks.get(text) || []), box]);
  drawRemark(box, text);
  return box;
}

function fates(tried) {
  return tried.slice(0, 4).map((each) => {
    const made = make("p", null, "soft");
    made.append(make("span", each.joined ? "asked" : "tried", each.joined ? "tag joined" : "tag"), ` ${each.text}${each.joined || !each.reason ? "" : ` · ${each.reason}`}`);
    return made;
  });
}

function listed(rows, here, draws) {
  const list = make("ol");
  list.append(...rows.map((each) => {
    const item = make("li");
    item.classList.toggle("here", each.group === here);
    item.append(...draws(each));
    return item;
  }));
  return list;
}

function row(link, figure) {
  const made = make("div", null, "row"), side = make("span", figure, "figure soft");
  made.append(link, side);
  return made;
}

function drawQuestions(here) {
  part("groups-title").textContent = "Questions";
  part("groups-said").textContent = "Those first that have a part in most disagreements.";
  const rows = told.questions.filter((each) => each.count || !each.unseen).map((each) => ({...each, group: `question:${each.id}`}));
  part("list").replaceChildren(listed(rows, here, (each) => {
    const parts = Object.entries(told.parts).filter(([name]) => each[name]).map(([name, text]) => `${each[name]} × ${text}`);
    const about = each.unseen ? "a further question may see it: look at the comments" : `${each.id} · ${each.dimension} · ${each.good} speaks for the output`;
    return [
      row(each.count ? go(each.text, {by: "question", group: each.group}) : make("span", each.text), count(each.count, "output")),
      make("p", about, "soft"), ...parts.map((text) => make("p", text, "soft")),
    ];
  }));
}

async function drawComments(here) {
  part("groups-title").textContent = "Comments that say much the same";
  if (!groups) {
    part("groups-said").textContent = "Grouping the comments …";
    part("list").replaceChildren();
    groups = await ask("comment_groups", {run});
  }
  if (state().by !== "comment") return;
  part("groups-said").textContent = `${groups.said} Those first that are on most disagreements.${groups.more ? ` ${count(groups.more, "further group")} not listed.` : ""}`;
  if (!groups.groups.length) part("groups-said").textContent = "Nobody wrote a comment on these outputs.";
  part("list").replaceChildren(listed(groups.groups.map((each) => ({...each, group: `comment:${each.id}`})), here, (each) => {
    const others = each.comments.slice(1), further = make("details");
    further.append(make("summary", `${count(others.length + each.more, "further wording")}`), ...others.map((other) => remark(other.text)));
    return [
      row(go(count(each.outputs, "output"), {by: "comment", group: each.group}), each.differ ? `differ on ${each.differ}` : "agree"),
      remark(each.text), ...(others.length ? [further] : []), ...fates(each.tried),
    ];
  }));
}

function drawWanted() {
  part("groups-title").textContent = "Candidate questions";
  part("groups-said").textContent = told.wanted.length ? "The next run tries them beside its own. It decides by the labels whether the judge asks them, and which answer speaks for an output." : "None yet: under “By comment”, make a comment a candidate question.";
  const command = make("pre", told.next_run);
  part("list").replaceChildren(listed(told.wanted, null, (each) => {
    const form = make("form", null, "wanted"), input = make("input"), save = make("button", "Save the wording"), back = make("button", "Take it back");
    Object.assign(input, {value: each.text, maxLength: 1000, required: true});
    input.setAttribute("aria-label", `Question made of the comment ${each.comment}`);
    back.type = "button";
    back.setAttribute("aria-label", `Take back: ${each.text}`);
    form.append(input, save, back);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      want(each.comment, input.value);
    });
    back.addEventListener("click", () => want(each.comment, "").then(() => part("groups-title").scrollIntoView()));
    const about = make("p", `From “${each.comment}” on ${count(each.examples.length, "output")} · ${each.by}, ${new Date(each.time).toLocaleString()}`, "soft");
    return [form, about];
  }), ...(told.wanted.length ? [command] : []));
}

async function drawLabels() {
  part("groups-title").textContent = "Further labels";
  if (!labels) {
    part("groups-said").textContent = "Looking for the labels that would tell most …";
    part("list").replaceChildren();
    labels = await ask("disagreement_labels", {run});
  }
  if (state().by !== "labels") return;
  part("groups-said").textContent = `${labels.labelled.toLocaleString()} of ${count(labels.labelled + labels.unlabelled, "output")} here are labelled. ${labels.sentence} ${labels.assumed}`;
  const order = make("p", labels.next.length ? `In the order of askance label: ${labels.order}.` : "All outputs here are labelled, so only further outputs can tell more. Those on which the judge is unsure come first:");
  part("list").replaceChildren(order, listed(labels.next, null, (each) => [row(toExample(run, each.id), each.why), make("p", each.output, "text")]), make("pre", labels.command));
}

function verdict(each) {
  const judge = each.score === null ? "the judge has no score" : `the judge ${each.passes ? "passes" : "fails"} it (${number(each.score, false, 3)})`;
  const people = each.people === null ? "people said nothing" : each.people === 1 ? "people passed it" : each.people === 0 ? "people failed it" : `people gave it ${number(each.people)}`;
  return `${judge}, ${people}`;
}

function drawCase(each) {
  const made = make("article"), title = make("h3"), parts = make("ul", null, "parts");
  title.append(toExample(run, each.id), each.off ? make("span", OFF[each.off], `tag ${each.off}`) : make("span", "they agree", "tag"), make("span", `${verdict(each)} · ${each.split}`, "soft"));
  made.append(title);
  for (const name of ["input", "context"]) {
    if (!each[name]) continue;
    const box = make("details");
    box.append(make("summary", name === "input" ? "Input" : "Context"), make("p", each[name], "text"));
    made.append(box);
  }
  made.append(make("p", each.output ?? "no output", "text"), ...each.comments.map(remark));
  parts.append(...each.parts.map((one) => make("li", `“${question(one.id)}” ${told.parts[one.part]}`, "soft")));
  if (each.parts.length) made.append(parts);
  return made;
}

function groupTitle(group) {
  if (group.startsWith("question:")) return question(group.slice(9));
  if (group.startsWith("comment:")) return `“${groups?.groups.find((each) => `comment:${each.id}` === group)?.text || "comments"}”`;
  return "All disagreements";
}

async function drawOutputs({by, group, start}, moved) {
  part("outputs").hidden = !group;
  part("both").classList.toggle("two", Boolean(group));
  if (!group) return;
  const found = await ask("disagreement_outputs", {run, group, start});
  if (state().group !== group || state().start !== start) return;
  const last = Math.min(found.count, start + found.outputs.length);
  part("outputs-title").textContent = `${groupTitle(group)} `;
  part("outputs-title").append(make("span", found.count ? `${start + 1} to ${last} of ${found.count}` : "no outputs: the run has changed", "soft"));
  part("cases").replaceChildren(...found.outputs.map(drawCase));
  for (const [id, text, to, there] of [["before", "Earlier", start - found.at_once, start > 0], ["after", "Further", start + found.at_once, last < found.count]]) {
    const link = go(text, {by, group, start: to > 0 ? to : 0});
    link.id = id;
    link.hidden = !there;
    part(id).replaceWith(link);
  }
  if (moved) part("outputs-title").focus();
}

async function draw(moved) {
  const now = state(), mine = ++drawing;
  part("done").textContent = "";
  remarks.clear();
  drawTabs(now.by);
  try {
    if (now.by === "question") drawQuestions(now.group);
    else if (now.by === "comment") await drawComments(now.group);
    else if (now.by === "wanted") drawWanted();
    else await drawLabels();
    if (mine !== drawing) return;
    await drawOutputs(now, moved);
    if (moved && !now.group) part("tabs").querySelector("[aria-current]").focus();
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

function begin(found) {
  told = found;
  document.title = `Disagreements in ${told.run} · askance`;
  part("run").textContent = told.run;
  part("to-examples").href = `examples?${new URLSearchParams({run})}`;
  part("judge").href = `judge?${new URLSearchParams({run})}`;
  const differ = told.lenient + told.strict;
  const apart = told.distance === null ? "" : ` They differ where the scores are more than ${number(told.distance)} apart.`;
  part("said").textContent = told.reason || `The judge and people differ on ${differ.toLocaleString()} of ${count(told.compared, "output")} that both speak of: the judge is kinder on ${told.lenient.toLocaleString()} and stricter on ${told.strict.toLocaleString()}.${apart}`;
  if (told.differ) part("said").append(" ", go("See all", {group: "all"}));
  part("about").textContent = `${told.model} on ${told.splits.join(" and ")}, from which the next run learns, too. ${told.test}`;
  part("tabs").hidden = part("both").hidden = false;
  draw(false);
}

addEventListener("popstate", () => draw(false));
ask("disagreements", {run}).then(begin, (error) => problem(error.message));
