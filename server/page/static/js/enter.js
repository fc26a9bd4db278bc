// Opens a one-time link: its code is in the fragment, which reaches no server and no log.
"use strict";
(async () => {
  const [code, next] = location.hash.slice(1).split("&next=").map(decodeURIComponent);
  history.replaceState(null, "", location.pathname);
  let text = "The node does not answer.";
  try {
    const body = new URLSearchParams({ code, next: next ?? "/ui" });
    const response = await fetch("/ui/enter", { method: "POST", body });
    const answer = await response.json();
    if (response.ok) return location.replace(answer.next);
    text = answer.error.message;
  } catch {}
  document.getElementById("state").textContent = text;
  document.getElementById("other").hidden = false;
})();
