// The lessons' interactive picture: a ring all-reduce, step by step.
// Plain JavaScript and SVG. interactive.py puts this file into a cell's output, with its data.
(() => {
  "use strict";

  const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);

  // ---------------------------------------------------------------- elements

  const make = (tag, attributes, children, namespace) => {
    const made = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  // JupyterLab's own shortcuts take the arrow keys, unless the focused element itself says this.
  const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };
  const el = (tag, attributes = {}, ...children) => {
    const keys = ["input", "button"].includes(tag) ? OWN_KEYS : {};
    return make(tag, { ...keys, ...attributes }, children);
  };
  const svg = (tag, attributes = {}, ...children) =>
    make(tag, attributes, children, "http://www.w3.org/2000/svg");

  let ids = 0;
  const labelled = (text, control) => {
    control.id = `workshop-control-${Date.now().toString(36)}-${ids++}`;
    return el("div", { class: "field" }, el("label", { for: control.id }, text), control);
  };

  // A slider with buttons on both sides; `changed` gets its value, and is called at once.
  const slider = (label, min, max, changed) => {
    const input = el("input", { type: "range", min, max, value: min, step: 1 });
    const button = (text, name, by) => {
      const made = el("button", { type: "button", "aria-label": name }, text);
      made.addEventListener("click", () => {
        input.value = Number(input.value) + by;
        changed(Number(input.value));
      });
      return made;
    };
    input.addEventListener("input", () => changed(Number(input.value)));
    const row = labelled(label, input);
    row.classList.add("slider");
    row.insertBefore(button("◀", `${label}: one back`, -1), input);
    row.append(button("▶", `${label}: one on`, 1));
    changed(min);
    return row;
  };

  // ---------------------------------------------------------------- the ring

  // data.frames[step][rank][chunk]: a number whose digits name the ranks in that sum.
  const ring = (host, { frames }) => {
    const size = frames[0].length;
    const cell = Math.max(16, Math.min(32, 128 / size));
    const width = cell * size;
    const center = { x: 210, y: 190 };
    const place = range(0, size).map((rank) => {
      const angle = (2 * Math.PI * rank) / size - Math.PI / 2;
      return { x: center.x + (205 - width / 2) * Math.cos(angle), y: center.y + 150 * Math.sin(angle) };
    });
    const complete = range(0, size).reduce((total, rank) => total + 10 ** rank, 0);
    const ranksIn = (value) => String(value).split("1").length - 1;

    // Where the line from one box's centre towards another leaves the box.
    const edge = (from, to) => {
      const [dx, dy] = [to.x - from.x, to.y - from.y];
      const share = Math.min((width / 2 + 6) / Math.abs(dx || 1e-9), 34 / Math.abs(dy || 1e-9));
      return { x: from.x + dx * share, y: from.y + dy * share };
    };

    const picture = svg("svg", { viewBox: "0 0 420 380", role: "img" });
    const says = el("p", { class: "says", "aria-live": "polite" });

    const draw = (step) => {
      const now = frames[step];
      const before = frames[Math.max(0, step - 1)];
      const phase = step === 0 ? "before" : step < size ? "reduce-scatter" : "all-gather";
      const parts = [];
      const moves = [];
      now.forEach((chunks, rank) => {
        const { x, y } = place[rank];
        parts.push(svg("text", { x, y: y - 20, "text-anchor": "middle" }, `rank ${rank}`));
        chunks.forEach((value, chunk) => {
          const came = value !== before[rank][chunk];
          if (came) moves.push({ from: (rank - 1 + size) % size, to: rank, chunk });
          const kind = value === complete ? "complete" : "partial";
          const left = x - width / 2 + chunk * cell;
          const shade = value === complete ? 0.55 : 0.08 + (0.4 * ranksIn(value)) / size;
          parts.push(
            svg("rect", {
              x: left, y: y - 14, width: cell, height: 28, class: came ? `${kind} came` : kind,
              "fill-opacity": shade,
            }),
            svg(
              "text",
              { x: left + cell / 2, y: y + 4, "text-anchor": "middle", class: "value" },
              size <= 4 ? String(value).padStart(size, "0") : `${ranksIn(value)}`
            )
          );
        });
      });
      for (const { from, to, chunk } of moves) {
        const [start, end] = [edge(place[from], place[to]), edge(place[to], place[from])];
        const angle = (Math.atan2(end.y - start.y, end.x - start.x) * 180) / Math.PI;
        const head = `translate(${end.x} ${end.y}) rotate(${angle})`;
        const [x, y] = [(start.x + end.x) / 2, (start.y + end.y) / 2];
        const away = { x: (x - center.x) * 0.2, y: (y - center.y) * 0.2 };
        parts.push(
          svg("line", { x1: start.x, y1: start.y, x2: end.x, y2: end.y, class: "move" }),
          svg("path", { d: "M0 0L-10 -5L-10 5Z", transform: head, class: "head" }),
          svg("text", { x: x + away.x, y: y + away.y, "text-anchor": "middle" }, `chunk ${chunk}`)
        );
      }
      const done = now.flat().filter((value) => value === complete).length;
      const sent = moves.map(({ from, to, chunk }) => `rank ${from} sends chunk ${chunk} to rank ${to}`);
      const text =
        (step === 0
          ? "Before the first step each rank holds its own numbers."
          : `Step ${step} of ${frames.length - 1}, ${phase}: ${sent.join("; ")}.`) +
        ` ${done} of ${size * size} chunks are complete.`;
      picture.replaceChildren(...parts);
      picture.setAttribute("aria-label", text);
      says.textContent = text;
    };

    host.append(slider("Step", 0, frames.length - 1, draw), picture, says);
  };

  globalThis.workshopPieces = { ring };
})();
