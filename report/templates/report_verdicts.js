// The examples of an evaluation or a comparison: their scores, and behind each its texts and verdicts.
(() => {
  const source = document.getElementById("table-data");
  if (!source) return;
  const MISSING = 255;
  const data = JSON.parse(source.textContent);
  const packed = data.counts ? unpack(data, ["first"]) : null;
  const pick = document.getElementById("only");
  const verdicts = packed ? `, ${packed.values[0].length.toLocaleString("en")} verdicts` : "";

  const verdict = (place, at) => {
    const value = packed.values[0][at], said = (ownValue(data.said, data.ids[place]) || {})[packed.asked[at]];
    const cell = element("td", undefined, "answered");
    if (value === MISSING) cell.appendChild(element("span", "missing", "worse"));
    else cell.appendChild(element("span", value >= 100 ? "yes" : "no", value >= 100 ? "yes" : "no"));
    if (value !== MISSING) cell.appendChild(element("small", " " + (value / 200).toFixed(2)));
    return [cell, said];
  };
  const detail = (cell, place) => {
    textFields(cell, ownValue(data.texts, data.ids[place]), data.elsewhere);
    const table = cell.appendChild(element("table")), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const label of ["Question", "Answer, probability of yes"]) {
      const th = head.appendChild(element("th", label));
      th.scope = "col";
    }
    for (let at = packed.starts[place]; at < packed.starts[place + 1]; at += 1) {
      const [text, id] = data.questions[packed.asked[at]], line = body.insertRow();
      const name = line.appendChild(element("td", text === id ? "" : text + " ", "wide"));
      name.dir = "auto";
      name.appendChild(element("span", id, "name muted"));
      const [answer, said] = verdict(place, at);
      if (said) name.append(element("br"), element("small", said, "muted"));
      line.appendChild(answer);
    }
  };
  const keep = (place) => {
    const wanted = pick ? pick.value : "";
    if (!wanted || !packed) return true;
    for (let at = packed.starts[place]; at < packed.starts[place + 1]; at += 1) {
      const value = packed.values[0][at];
      if (wanted === "missing" ? value === MISSING : packed.asked[at] === Number(wanted) && value < 100) return true;
    }
    return false;
  };
  const arrange = explore({
    data,
    columns: data.columns,
    sorted: data.sorted,
    down: data.down,
    detail: packed && detail,
    keep,
    text: (place) => data.ids[place] + " " + (ownValue(data.texts, data.ids[place]) || []).map(([, text]) => text).join(" "),
    cell: (name, value) => [thousandths(value, data.signed.includes(name)), "n"],
    note: (left) => `${left.toLocaleString("en")} of ${data.ids.length.toLocaleString("en")} examples${verdicts}.${packed ? " A name opens its verdicts." : ""}`,
  });
  if (pick) pick.addEventListener("change", arrange);
  for (const button of document.querySelectorAll("button[data-only]")) {
    button.addEventListener("click", () => {
      pick.value = button.dataset.only;
      arrange();
      document.getElementById("explorer").scrollIntoView();
      pick.focus({ preventScroll: true });
    });
  }
})();
