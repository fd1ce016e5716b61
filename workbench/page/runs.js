"use strict";
const LIVE = 2000, QUIET = 15000;
const FIRST = `askance demo
askance label DATA.jsonl
askance align DATA.jsonl --checklist CHECKLIST.yaml --model MODEL --run RUN`;
const chosen = new Set(asked.getAll("run"));
let shown = "";

const when = (text) => new Date(text).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});

function link(text, page, run) {
  const made = make("a", text);
  made.href = `${page}?${new URLSearchParams({run})}`;
  return made;
}

function decided(run) {
  if (run.state === "damaged") return [make("span", "damaged", "tag damaged"), make("p", run.problem, "soft")];
  if (run.state !== "finished") return [make("span", run.state, `tag ${run.state}`), make("p", run.line, "soft")];
  return [make("span", run.decided, `tag ${run.decided}`), make("p", run.headline, "soft")];
}

function line(run) {
  const pick = make("input");
  Object.assign(pick, {type: "checkbox", checked: chosen.has(run.run), disabled: run.state !== "finished"});
  pick.dataset.run = run.run;
  pick.setAttribute("aria-label", `Compare ${run.run}`);
  pick.addEventListener("change", () => {
    if (pick.checked) chosen.add(run.run);
    else chosen.delete(run.run);
    choose();
  });
  const about = make("p", [run.command, run.model].filter(Boolean).join(" · "), "soft");
  const name = run.state === "finished" ? link(run.run === "." ? run.name : run.run, "report", run.run) : make("bdi", run.run === "." ? run.name : run.run);
  const offer = (there, text, page, name) => {
    if (!there) return [];
    const made = link(text, page, run.run);
    made.setAttribute("aria-label", `${name} ${run.run}`);
    return [made, " "];
  };
  const live = {running: "Watch or stop", stopped: "Go on"}[run.state];
  const pages = [
    offer(run.judge, "Judge", "judge", "Judge of"),
    offer((run.judge && run.state !== "judge") || run.command === "tune", "Examples", "examples", "Examples of"),
    offer(live, live, "start", `${live}:`),
    offer(run.judge && run.state !== "judge", "Disagreements", "disagreements", "Disagreements in"),
    offer(run.state === "finished" && ["tune", "migrate"].includes(run.command), "Prompt", "prompts", "Prompt of"),
  ].flat();
  const gain = run.gain ? [drawn(run.gain, -1, 1, true), make("p", run.gain_of, "soft")] : [make("span", "–", "soft")];
  const cost = run.cost === undefined ? "–" : `${run.cost ?? "price unknown"}${run.calls == null ? "" : `, ${run.calls.toLocaleString()} calls`}`;
  return row(cell("Compare", pick), cell("", name, about, ...pages), cell("", ...decided(run)), cell("Gained", ...gain), cell("Cost", make("span", cost)), cell("When", make("time", when(run.when))));
}

function choose() {
  const [first, second] = [...chosen];
  part("go").disabled = chosen.size !== 2;
  part("chosen").textContent = chosen.size === 2 ? `${first} and ${second}` : chosen.size > 2 ? "Choose two runs, no more." : "Choose two runs to compare them.";
  const query = new URLSearchParams([...chosen].map((run) => ["run", run]));
  history.replaceState(null, "", chosen.size ? `?${query}` : location.pathname);
}

async function look() {
  let wait = QUIET;
  try {
    const told = await ask("runs");
    problem("");
    if (told.runs.some((run) => run.state === "running")) wait = LIVE;
    const text = JSON.stringify(told);
    if (text !== shown) {
      shown = text;
      const kept = document.activeElement?.dataset?.run;
      part("place").textContent = told.root;
      part("none").hidden = told.runs.length > 0;
      part("first").textContent = FIRST;
      part("runs").hidden = part("compare").hidden = !told.runs.length;
      for (const name of chosen) if (!told.runs.some((run) => run.run === name)) chosen.delete(name);
      part("rows").replaceChildren(...told.runs.map(line));
      if (kept) [...part("rows").querySelectorAll("input")].find((each) => each.dataset.run === kept)?.focus();
      choose();
    }
  } catch (error) {
    problem(error.message);
  }
  setTimeout(look, document.hidden ? QUIET : wait);
}

part("go").addEventListener("click", () => {
  const [before, after] = [...chosen];
  location.href = `compare?${new URLSearchParams({before, after})}`;
});
look();
