"use strict";
const shownCell = (value) => value !== null && typeof value === "object" ? drawn(value, -1, 1, true) : make("span", value ?? "");

function table(found) {
  const made = make("table"), head = make("tr"), body = make("tbody"), top = make("thead");
  made.append(make("caption", found.caption, "soft"));
  for (const each of found.heads) head.append(make("th", each));
  top.append(head);
  body.append(...found.rows.map((cells) => {
    const line = make("tr");
    for (const each of cells) {
      const one = make("td");
      one.append(shownCell(each));
      line.append(one);
    }
    return line;
  }));
  made.append(top, body);
  return made;
}

function show(told) {
  part("title").textContent = told.title;
  const lines = told.patch ? told.lines.filter((each) => each !== told.patch.trimEnd()) : told.lines;
  part("lines").replaceChildren(...lines.map((each) => make("p", each)));
  part("tables").replaceChildren(...told.tables.flatMap((each) => [table(each), ...each.notes.map((note) => make("p", note, "soft"))]));
  part("patch-part").hidden = !told.patch;
  part("patch").replaceChildren(...told.patch.split("\n").map((line) => {
    const tag = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span";
    return make(tag, `${line}\n`);
  }));
}

const pair = {before: asked.get("before"), after: asked.get("after")};
if (pair.before && pair.after) ask("compare", pair).then(show, (error) => problem(error.message));
else problem("No two runs are named in the address. Tick two on the page Runs.");
