// Opens a one-time link: its code stands in the fragment, which reaches no server and no log.
"use strict";
(async () => {
  const [code, next = "/ui"] = location.hash.slice(1).split("&next=").map(decodeURIComponent);
  // The code must stay neither in the address bar nor in the history.
  history.replaceState(null, "", location.pathname);
  const fail = (text) => {
    document.getElementById("state").textContent = text;
    document.getElementById("other").hidden = false;
  };
  if (!code) return fail("This link has no code. `cacp open` makes a new one.");
  try {
    const response = await fetch("/ui/enter", { method: "POST", body: new URLSearchParams({ code, next }) });
    const answer = await response.json();
    if (response.ok) location.replace(answer.next);
    else fail(answer.error?.message ?? "The node refused this link.");
  } catch {
    fail("The node does not answer.");
  }
})();
