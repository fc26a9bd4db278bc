// The live page: keyboard, ages, and a fresh look whenever the node says that something has changed.
"use strict";
(() => {
  const { view, project } = document.body.dataset;
  const RETRY_MAX = 15000;
  let source, retry = 500, timer, looking = false, again = false;

  const say = (text) => {
    const live = document.getElementById("live");
    if (live && live.textContent !== text) live.textContent = text;
  };
  const seq = () => document.getElementById("main").dataset.seq;

  // --- live ------------------------------------------------------------------------------------

  async function look() {
    if (looking) return again = true;
    looking = true;
    try {
      do {
        again = false;
        const response = await fetch(location.href, { headers: { accept: "text/html" } });
        if (response.redirected || response.status === 401) return location.reload();
        if (!response.ok && response.status !== 404) throw new Error(String(response.status));
        const text = await response.text();
        const note = [...document.getElementById("message").childNodes];
        await htmx.swap({ text, target: document.body, sourceElement: document.body, swap: "innerMorph" });
        // The outcome of an action stays until the reader goes on.
        const message = document.getElementById("message");
        if (!message.childElementCount) message.append(...note);
        mark();
        say("Live");
        document.dispatchEvent(new CustomEvent("page:fresh"));
      } while (again);
      return true;
    } catch {
      lost();
    } finally {
      looking = false;
    }
  }

  // A browser gives up on a stream that was refused, so this page retries by itself.
  function lost() {
    say("Not live, trying again");
    source?.close();
    source = null;
    clearTimeout(timer);
    // After a restart of the node this page may be of another release, or signed out.
    timer = setTimeout(async () => await look() && follow(), retry + Math.random() * retry / 2);
    retry = Math.min(RETRY_MAX, retry * 2);
  }

  function follow() {
    clearTimeout(timer);
    if (!view || document.hidden) return;
    source?.close();
    const query = new URLSearchParams({ view, after: seq() });
    if (project) query.set("project", project);
    const opened = source = new EventSource(`/ui/events?${query}`);
    opened.onopen = () => { say("Live"); retry = 500; };
    opened.onerror = () => { if (opened === source) lost(); };
    opened.addEventListener("changed", look);
  }

  document.addEventListener("visibilitychange", () => {
    // A hidden page holds no stream: browsers allow six connections to a node.
    if (!document.hidden) return follow();
    source?.close();
    source = null;
    clearTimeout(timer);
  });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

  // --- ages ------------------------------------------------------------------------------------

  function age(element) {
    const seconds = (Date.now() - Date.parse(element.dateTime)) / 1000;
    for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "min"]]) {
      const count = Math.floor(seconds / size);
      if (count >= 1) return `${count} ${unit}${count > 1 && unit !== "min" ? "s" : ""}`;
    }
    return "now";
  }
  setInterval(() => {
    for (const element of document.querySelectorAll("time[data-ago]")) {
      const short = age(element), text = element.dataset.ago && short !== "now" ? `${short} ago` : short;
      if (element.textContent !== text) element.textContent = text;
    }
  }, 20000);

  // --- keys ------------------------------------------------------------------------------------

  const items = () => [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent);
  let current, prefix = 0;

  // A morph rewrites attributes, so the place is set anew.
  function mark() {
    for (const item of document.querySelectorAll("[data-item].at")) if (item !== current) item.classList.remove("at");
    if (current?.isConnected) current.classList.add("at");
  }

  function step(by) {
    const all = items();
    if (!all.length) return;
    const place = all.indexOf(current);
    current = all[Math.max(0, Math.min(all.length - 1, place < 0 ? (by > 0 ? 0 : all.length - 1) : place + by))];
    if (!current.hasAttribute("tabindex")) current.tabIndex = -1;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest" });
    mark();
  }

  addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && field) return field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const going = Date.now() - prefix < 1500;
    prefix = 0;
    if (going) {
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
    } else if (event.key === "g") {
      prefix = Date.now();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    } else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("find").focus();
    } else if (event.key === "?") {
      document.getElementById("keys").showModal();
    } else if (event.key === "Enter" && event.target === current) {
      current.querySelector("a")?.click();
    }
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("#keys-open")) document.getElementById("keys").showModal();
  });
  // A filter applies as it is chosen; its button is for those without scripts.
  document.addEventListener("change", (event) => {
    if (event.target.matches("form.filters select, form.filters [type=checkbox]")) event.target.form.requestSubmit();
  });
  // Another script of the page has changed its address.
  document.addEventListener("page:look", look);

  follow();
})();
