// A table of examples: sorted, searched, filtered and paged; a row opens what is behind it.
const element = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
// What is known by a name: an example may be called what every object has, such as "constructor".
const ownValue = (of, name) => (Object.hasOwn(of, name) ? of[name] : undefined);
const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
const thousandths = (value, sign) => {
  if (value === null) return "\u2013";
  const text = Math.abs(value / 1000).toFixed(2);
  return (value < 0 && text !== "0.00" ? "\u2212" : sign && text !== "0.00" ? "+" : "") + text;
};

// The verdicts of each example, packed one after the other: where an example's begin, and which question each is on.
const unpack = (data, columns) => {
  const counts = new Uint32Array(bytes(data.counts).buffer), packed = bytes(data.asked).buffer;
  const values = columns.map((name) => bytes(data[name]));
  const asked = packed.byteLength === 2 * values[0].length ? new Uint16Array(packed) : new Uint32Array(packed);
  const starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, place) => { starts[place + 1] = starts[place] + count; });
  return { starts, asked, values };
};

// An image of an example: its data, a link to it, or why it is not shown. Nothing is fetched.
const picture = (kind, value) => {
  if (kind === "note") return element("p", value, "note");
  if (kind === "link") {
    const line = element("p", "Image: ", "note"), link = line.appendChild(element("a", value));
    link.href = value;
    link.rel = "noopener noreferrer";
    return line;
  }
  const shown = element("img", undefined, "picture");
  shown.src = value;
  shown.alt = "Image of the example";
  return shown;
};

// The texts of an example, in boxes.
const textFields = (cell, texts, elsewhere) => {
  const fields = cell.appendChild(element("div", undefined, "texts"));
  for (const [label, text, images] of texts || []) {
    const field = fields.appendChild(element("div", undefined, "field"));
    field.appendChild(element("p", label, "label"));
    const box = field.appendChild(element("div", text, "text"));
    box.dir = "auto";
    box.tabIndex = 0;
    for (const [kind, value] of images || []) field.appendChild(picture(kind, value));
  }
  if (!texts && elsewhere) cell.appendChild(element("p", elsewhere, "note"));
};

const explore = ({ data, columns, sorted, down = false, text, cell, detail, keep, note }) => {
  const PAGE = 25;
  let page = 0, words = "", order = [];
  const matches = (place) => {
    const whole = text(place).toLowerCase();
    return words.split(/\s+/).every((word) => whole.includes(word));
  };
  const arrange = () => {
    order = [...data.ids.keys()].filter((place) => (!keep || keep(place)) && (!words || matches(place)));
    const values = data[sorted];
    order.sort((a, b) => {
      if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
      const found = sorted === "ids" ? values[a].localeCompare(values[b], undefined, { numeric: true }) : values[a] - values[b];
      return (down ? -found : found) || a - b;
    });
    page = 0;
    draw();
  };
  const toggle = (row, place) => {
    const button = row.querySelector("button"), open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      row.nextSibling.remove();
      return;
    }
    const under = element("tr", undefined, "detail"), inside = under.appendChild(element("td"));
    inside.colSpan = columns.length;
    detail(inside, place);
    row.after(under);
  };
  const body = document.getElementById("explorer-rows");
  const draw = () => {
    const pages = Math.max(1, Math.ceil(order.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    body.replaceChildren(...order.slice(page * PAGE, (page + 1) * PAGE).map((place) => {
      const row = element("tr");
      for (const [, name] of columns) {
        if (name === "ids") {
          const first = element("th");
          first.scope = "row";
          if (detail) {
            const button = first.appendChild(element("button", data.ids[place], "open name"));
            button.type = "button";
            button.setAttribute("aria-expanded", "false");
            button.addEventListener("click", () => toggle(row, place));
          } else {
            first.appendChild(element("span", data.ids[place], "name"));
          }
          row.appendChild(first);
        } else {
          row.appendChild(element("td", ...cell(name, data[name][place])));
        }
      }
      return row;
    }));
    document.getElementById("page-now").textContent = `${page + 1} of ${pages}`;
    document.getElementById("page-back").disabled = page === 0;
    document.getElementById("page-on").disabled = page === pages - 1;
    document.getElementById("explorer-note").textContent = note(order.length);
    for (const head of document.querySelectorAll("#explorer-head th")) {
      head.setAttribute("aria-sort", head.dataset.name !== sorted ? "none" : down ? "descending" : "ascending");
    }
  };
  for (const [label, name] of columns) {
    const head = element("th", undefined, name === "ids" ? "" : "n"), button = head.appendChild(element("button", label, "sort"));
    head.scope = "col";
    head.dataset.name = name;
    button.type = "button";
    button.addEventListener("click", () => {
      down = sorted === name ? !down : false;
      sorted = name;
      arrange();
    });
    document.getElementById("explorer-head").appendChild(head);
  }
  document.getElementById("page-back").addEventListener("click", () => { page -= 1; draw(); });
  document.getElementById("page-on").addEventListener("click", () => { page += 1; draw(); });
  document.getElementById("find").addEventListener("input", (event) => {
    words = event.target.value.trim().toLowerCase();
    arrange();
  });
  document.getElementById("explorer").hidden = false;
  arrange();
  return arrange;
};
