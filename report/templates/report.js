"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  for (const tools of all(".tools")) tools.hidden = false;

  // A link to something inside a closed part opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target.closest("[hidden]")) dispatchEvent(new CustomEvent("show-all"));  // by whoever hid it
    target.scrollIntoView();
  };

  for (const button of all("button[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 1500);
      } catch {
        const part = source.closest("details");
        if (part) part.open = true;
        getSelection().selectAllChildren(source);
        button.textContent = "Selected: copy it with the keyboard";
      }
    });
  }

  // What is closed on the screen is open on paper.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });

  addEventListener("hashchange", reveal);
  reveal();
})();
