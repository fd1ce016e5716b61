// The test examples of a run: scores before and after, and the questions of each.
(() => {
  const source = document.getElementById("example-data");
  if (!source) return;
  const MISSING = 255;
  const data = JSON.parse(source.textContent);
  const { starts, asked, values: [first, last] } = unpack(data, ["first", "last"]);
  const changed = data.judged.changed, judge = data.judged.mode !== "tune";
  const columns = [
    ["Example", "ids"], ["Wanted", "wanted"], [changed ? "Before" : "Score", "before"], ["After", "after"],
    [judge ? "Nearer by" : "Higher by", "better"],
  ].filter(([, name]) => name === "ids" || data[name].some((value) => value !== null));

  const detail = (cell, place) => {
    textFields(cell, ownValue(data.texts, data.ids[place]), "Its texts are in inputs/examples.jsonl.");
    const table = cell.appendChild(element("table")), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const label of changed ? ["Question", "Probability of yes before", "After"] : ["Question", "Probability of yes"]) {
      const th = head.appendChild(element("th", label));
      th.scope = "col";
    }
    for (let at = starts[place]; at < starts[place + 1]; at += 1) {
      const [text, id] = data.questions[asked[at]], line = body.insertRow();
      const name = line.appendChild(element("td", text + " ", "wide"));
      name.dir = "auto";
      name.appendChild(element("span", id, "name muted"));
      for (const value of changed ? [first[at], last[at]] : [first[at]]) {
        line.appendChild(element("td", value === MISSING ? "\u2013" : (value / 200).toFixed(2), "n"));
      }
      const known = first[at] !== MISSING && last[at] !== MISSING;
      if (changed && known && (first[at] >= 100) !== (last[at] >= 100)) line.className = "turned";
    }
  };
  explore({
    data,
    columns,
    sorted: changed ? "better" : "ids",
    detail,
    text: (place) => data.ids[place] + " " + (ownValue(data.texts, data.ids[place]) || []).map(([, text]) => text).join(" "),
    cell: (name, value) => [
      thousandths(value, name === "better"),
      name === "better" && value !== null && Math.abs(value) >= 50 ? (value < 0 ? "n worse" : "n better") : "n",
    ],
    note: (left) => `${left.toLocaleString("en")} of ${data.ids.length.toLocaleString("en")} examples, ${first.length.toLocaleString("en")} verdicts${changed ? " of each version" : ""}. A name opens its questions.`,
  });
})();
