// Tables that are whole on the page: a click on a column's head sorts by it; a cell may bring its value.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, place) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
  heads.forEach((head, place) => {
    if (head.tagName !== "TH") return;
    const button = element("button", head.textContent, "sort");
    button.type = "button";
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const now = head.getAttribute("aria-sort"), up = now === "none" ? !numeric : now === "descending";
      for (const each of heads) if (each.tagName === "TH") each.setAttribute("aria-sort", each !== head ? "none" : up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a, place), value(b, place)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return (numeric ? x - y : x.localeCompare(y, undefined, { numeric: true })) * (up ? 1 : -1);
      });
      body.append(...rows);
    });
  });
}
