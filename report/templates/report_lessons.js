// Lessons by status and words.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const rows = all(".lesson-row");
  const buttons = all("button[data-status]");
  const search = document.getElementById("search");
  if (!search) return;
  let status = "";
  const show = (wanted, words) => {
    status = wanted;
    if (search.value !== words) search.value = words;
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = (wanted && row.dataset.status !== wanted) || !parts.every((part) => text.includes(part));
      left += !row.hidden;
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.status === wanted));
    document.getElementById("no-match").hidden = left > 0 || rows.length === 0;
  };
  for (const button of buttons) button.addEventListener("click", () => show(button.dataset.status, search.value));
  search.addEventListener("input", () => show(status, search.value));
  addEventListener("show-all", () => show("", ""));
})();
