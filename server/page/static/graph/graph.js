/* Draws graphs: boxes that are joined by lines, laid out by dagre.

   <figure class="graph" id="…" hx-morph-skip-children aria-label="…"
           data-graph='{"nodes": […], "edges": […]}'></figure>

   node: {id, label, note?, state?, href?, title?, look?}
   edge: {from, to, label?, state?, href?, title?, look?, arrow?: "to" | "both" | "none"}
   graph: {nodes, edges, direction?: "LR" | "TB"}, by default the one that fits

   `note` is a second line. `state` becomes the class "is-STATE", which page.css colours and dashes.
   `look` is "marked" or "faint". What has a `href` is a link. `title` is its tooltip, and
   read out. The attribute is the only input: it is drawn anew whenever a refresh changes it,
   at the same zoom and place. The same facts must stand in a list beside it, for those without scripts. */
"use strict";
(() => {
  const LINE = 17, PAD = 10, MOST = 30, SHRUNK = 0.85;
  const pen = document.createElement("canvas").getContext("2d");
  const scales = new Map();

  const make = (name, attributes, ...inner) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inner);
    return element;
  };
  const short = (text) => (text.length > MOST ? text.slice(0, MOST - 1) + "…" : text);
  const wide = (text) => pen.measureText(short(text)).width;
  const known = (text) => String(text || "").replace(/[^a-z_-]/g, "");
  const ofClass = (kind, item) => `${kind} is-${known(item.state)} ${known(item.look)}`;

  const wrapped = (kind, item, ...inner) => {
    const group = make("g", { class: ofClass(kind, item) }, ...inner);
    if (item.title) group.prepend(make("title", {}, item.title));
    if (!item.href) return group;
    const name = [item.label, item.note].filter(Boolean).map(short).join(" ");
    return make("a", { href: item.href, "aria-label": [name, item.title].filter(Boolean).join(": ") }, group);
  };

  function placed(data, rankdir) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({
      rankdir, nodesep: 22, edgesep: 12, ranksep: 46, marginx: 12, marginy: 12,
    });
    for (const node of data.nodes)
      graph.setNode(node.id, {
        node,
        width: Math.max(wide(node.label), wide(node.note || "")) + 2 * PAD,
        height: (node.note ? 2 : 1) * LINE + PAD,
      });
    data.edges.forEach((edge, place) => {
      if (graph.hasNode(edge.from) && graph.hasNode(edge.to))
        graph.setEdge(edge.from, edge.to, {
          edge, width: edge.label ? wide(edge.label) + 8 : 0, height: edge.label ? LINE : 0,
          labelpos: "c",
        }, String(place));
    });
    dagre.layout(graph);
    return graph;
  }

  const curve = (points) => {
    let path = `M${points[0].x} ${points[0].y}`;
    for (let at = 1; at < points.length - 1; at++) {
      const [here, next] = [points[at], points[at + 1]];
      const last = at === points.length - 2;
      path += `Q${here.x} ${here.y} ${last ? next.x : (here.x + next.x) / 2} ${last ? next.y : (here.y + next.y) / 2}`;
    }
    return points.length > 2 ? path : `${path}L${points[1].x} ${points[1].y}`;
  };

  const head = (before, tip) => {
    const turn = (Math.atan2(tip.y - before.y, tip.x - before.x) * 180) / Math.PI;
    return make("path", {
      class: "head", d: "M0 0L-9 4L-9 -4Z", transform: `translate(${tip.x} ${tip.y}) rotate(${turn})`,
    });
  };

  // A curve passes beside its inner points, of which dagre gives one to the label.
  const onCurve = (points, x, y) => {
    const far = (point) => Math.hypot(point.x - x, point.y - y);
    const inner = points.slice(1, -1);
    if (!inner.length) return { x: (points[0].x + points[1].x) / 2, y: (points[0].y + points[1].y) / 2 };
    const at = points.indexOf(inner.reduce((best, point) => (far(point) < far(best) ? point : best)));
    const side = (other, isEnd) => (axis) => (isEnd ? other[axis] : (other[axis] + points[at][axis]) / 2);
    const [before, after] = [side(points[at - 1], at === 1), side(points[at + 1], at === points.length - 2)];
    const on = (axis) => before(axis) / 4 + points[at][axis] / 2 + after(axis) / 4;
    return { x: on("x"), y: on("y") };
  };

  const drawnLine = ({ edge, points }) => {
    const parts = [make("path", { class: "line", d: curve(points) })];
    const arrow = edge.arrow || "to";
    if (arrow !== "none") parts.push(head(points.at(-2), points.at(-1)));
    if (arrow === "both") parts.push(head(points[1], points[0]));
    return wrapped("edge", edge.label ? { ...edge, href: null } : edge, ...parts);
  };

  const drawnLabel = ({ edge, points, x, y }) => {
    const size = wide(edge.label) + 8;
    const at = onCurve(points, x, y);
    return wrapped("edge", edge,
      make("rect", { class: "plate", x: at.x - size / 2, y: at.y - LINE / 2, width: size, height: LINE, rx: 3 }),
      make("text", { x: at.x, y: at.y + 4 }, short(edge.label)),
    );
  };

  const drawnNode = ({ node, x, y, width, height }) => {
    const box = make("rect", { class: "box", x: x - width / 2, y: y - height / 2, width, height, rx: 6 });
    const first = node.note ? y - 4 : y + 4;
    const parts = [box, make("text", { x, y: first }, short(node.label))];
    if (node.note) parts.push(" ", make("text", { class: "second", x, y: y + 13 }, short(node.note)));
    return wrapped("node", node, ...parts);
  };

  function draw(figure) {
    const data = JSON.parse(figure.dataset.graph);
    const old = figure.querySelector(".canvas");
    const [left, top] = old ? [old.scrollLeft, old.scrollTop] : [0, 0];
    const focused = figure.contains(document.activeElement) && document.activeElement.getAttribute("href");
    figure.replaceChildren();
    if (!data.nodes.length) return;
    const style = getComputedStyle(figure);
    pen.font = `13px ${style.fontFamily}`;
    let graph = placed(data, data.direction || "LR");
    const room = figure.parentElement.clientWidth;
    if (!data.direction && graph.graph().width * SHRUNK > room) {
      const upright = placed(data, "TB");
      if (upright.graph().width < graph.graph().width) graph = upright;
    }
    const { width, height } = graph.graph();
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
    svg.setAttribute("aria-label", figure.getAttribute("aria-label") || "Graph");
    const edges = graph.edges().map((id) => graph.edge(id)).filter(({ points }) => points?.length > 1);
    svg.append(
      ...edges.map(drawnLine),
      ...edges.filter(({ edge }) => edge.label).map(drawnLabel),
      ...graph.nodes().map((id) => drawnNode(graph.node(id))),
    );
    const canvas = document.createElement("div");
    canvas.className = "canvas";
    canvas.append(svg);
    figure.append(bar((factor) => zoom(figure, svg, width, height, factor)), canvas);
    zoom(figure, svg, width, height, scales.has(figure.id) ? 1 : 0);
    canvas.scrollTo(left, top);
    drag(canvas);
    if (focused) [...svg.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  function zoom(figure, svg, width, height, factor) {
    const fit = Math.min(1, (figure.clientWidth - 2) / width);
    const scale = factor ? Math.min(3, Math.max(0.1, (scales.get(figure.id) || fit) * factor)) : Math.max(fit, 0.55);
    scales.set(figure.id, scale);
    svg.setAttribute("width", Math.round(width * scale));
    svg.setAttribute("height", Math.round(height * scale));
  }

  function bar(act) {
    const row = document.createElement("div");
    row.className = "zoom";
    for (const [sign, name, factor] of [["+", "Zoom in", 1.25], ["−", "Zoom out", 0.8], ["Fit", "Fit", 0]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", () => act(factor));
      row.append(button);
    }
    return row;
  }

  function drag(canvas) {
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && !event.target.closest("a"))
        from = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from && event.buttons) canvas.scrollTo(from[0] - event.clientX, from[1] - event.clientY);
      else from = null;
    });
  }

  const drawAll = () => document.querySelectorAll("figure.graph[data-graph]").forEach((figure) => {
    if (figure.drawn === figure.dataset.graph && figure.querySelector("svg")) return;
    figure.drawn = figure.dataset.graph;
    draw(figure);
  });
  addEventListener("DOMContentLoaded", () => {
    drawAll();
    // A refresh leaves the drawing alone (hx-morph-skip-children) and renews the attribute.
    new MutationObserver(drawAll).observe(document.body, {
      subtree: true, childList: true, attributeFilter: ["data-graph"],
    });
  });
})();
