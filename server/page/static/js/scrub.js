// The scrubber of a project's history: shows the chosen change without leaving the page.
"use strict";
(() => {
  let timer;
  document.addEventListener("input", ({ target }) => {
    if (target.id !== "scrub") return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", `${location.pathname}?change=${target.value}`);
      document.dispatchEvent(new Event("page:look"));
    }, 100);
  });
})();
