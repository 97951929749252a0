// The lessons' interactive pieces: a ring all-reduce, the timeline of ranks, a calculator.
// Plain JavaScript and SVG. interactive.py puts this file into a cell's output, with its data.
// `model` is workshop/measure/all_reduces.py, alpha_beta.py and step_time.py again; a test holds
// the two equal.
(() => {
  "use strict";

  // ---------------------------------------------------------------- the model

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const range = (from, to, step = 1) => {
    const found = [];
    for (let at = from; at < to; at += step) found.push(at);
    return found;
  };
  const repeat = (rounds, times) => range(0, times).flatMap(() => rounds);

  // A message is [source, to, bytes]; a round is a list of messages.
  const passes = (chunk, rings) => {
    const size = rings[0].length;
    const round = rings.flatMap((ring) =>
      range(0, size).map((at) => [ring[at], ring[(at + 1) % size], chunk])
    );
    return repeat([round], size - 1);
  };

  const tree = (bytes, size) => {
    const up = [];
    for (let away = 1; away < size; away *= 2) {
      up.push(range(away, size, 2 * away).map((rank) => [rank, rank - away, bytes]));
    }
    const down = up.map((level) => level.map(([from, to, n]) => [to, from, n])).reverse();
    return [...up, ...down];
  };

  const ALGORITHMS = {
    naive(bytes, instances, each) {
      const others = range(1, instances * each);
      return [...others.map((rank) => [[rank, 0, bytes]]), ...others.map((rank) => [[0, rank, bytes]])];
    },
    tree: (bytes, instances, each) => tree(bytes, instances * each),
    ring(bytes, instances, each) {
      const size = instances * each;
      return repeat(passes(bytes / size, [range(0, size)]), 2);
    },
    gloo(bytes, instances, each) {
      const size = instances * each;
      const chunk = bytes / size;
      const perChunk = Math.max(2, Math.ceil(chunk / 1048576));
      const segments = (size - 1) * perChunk;
      const atATime = (count) => {
        const sent = (count * chunk) / perChunk;
        return range(0, size).map((rank) => [rank, (rank - 1 + size) % size, sent]);
      };
      const half = repeat([atATime(2)], Math.floor(segments / 2));
      return repeat([...half, ...repeat([atATime(1)], segments % 2)], 2);
    },
    blind_ring(bytes, instances, each) {
      const order = range(0, each).flatMap((local) => range(0, instances).map((i) => i * each + local));
      return repeat(passes(bytes / (instances * each), [order]), 2);
    },
    two_tier(bytes, instances, each) {
      const within = range(0, instances).map((i) => range(i * each, (i + 1) * each));
      const peers = range(0, each).map((local) => range(local, instances * each, each));
      const part = bytes / each;
      const inside = passes(part, within);
      return [...inside, ...repeat(passes(part / instances, peers), 2), ...inside];
    },
    herring(bytes, instances, each) {
      const servers = range(0, instances).map((i) => i * each);
      const inside = tree(bytes, each).map((level) =>
        servers.flatMap((server) => level.map(([from, to, n]) => [server + from, server + to, n]))
      );
      const half = Math.floor(inside.length / 2);
      const bucket = bytes / instances;
      const swaps = range(1, instances).map((away) =>
        range(0, instances).map((i) => [servers[i], servers[(i + away) % instances], bucket])
      );
      return [...inside.slice(0, half), ...repeat(swaps, 2), ...inside.slice(half)];
    },
  };

  // A link is {alpha, beta}; a tier is {alone, busy, at_once}; tiers are {inside, across}.
  const linkSeconds = (link, bytes) => link.alpha + link.beta * bytes;

  const tierSeconds = (tier, messages) => {
    const mean = sum(messages.map(([, , bytes]) => bytes)) / messages.length;
    const one = linkSeconds(tier.alone, mean);
    const all = linkSeconds(tier.busy, mean);
    const share = tier.at_once > 1 ? (messages.length - 1) / (tier.at_once - 1) : 0;
    return one + share * (all - one);
  };

  const roundSeconds = (messages, tiers, each) => {
    const groups = new Map();
    const add = (key, tier, message) => {
      if (!groups.has(key)) groups.set(key, { tier, messages: [] });
      groups.get(key).messages.push(message);
    };
    for (const message of messages) {
      const from = Math.floor(message[0] / each);
      const to = Math.floor(message[1] / each);
      if (from === to) {
        add(`within ${from}`, tiers.inside, message);
      } else {
        add(`out ${from}`, tiers.across, message);
        add(`into ${to}`, tiers.across, message);
      }
    }
    const seconds = [...groups.values()].map((group) => tierSeconds(group.tier, group.messages));
    return seconds.length ? Math.max(...seconds) : 0;
  };

  // An algorithm repeats its rounds: each is worked out once.
  const eachSeconds = (rounds, tiers, each) => {
    const known = new Map();
    return rounds.map((messages) => {
      if (!known.has(messages)) known.set(messages, roundSeconds(messages, tiers, each));
      return known.get(messages);
    });
  };

  // While a chunk crosses the network, the next one is added up inside its instance.
  const twoTierSeconds = (bytes, instances, each, tiers) => {
    const count = Math.max(1, Math.floor(bytes / 1048576));
    const seconds = eachSeconds(ALGORITHMS.two_tier(bytes / count, instances, each), tiers, each);
    const last = seconds.length - (each - 1); // where the rounds of the all-gather begin
    const scatter = sum(seconds.slice(0, each - 1));
    const cross = sum(seconds.slice(each - 1, last));
    const gather = sum(seconds.slice(last));
    let inside = 0;
    let network = 0;
    const crossed = range(0, count).map(() => {
      inside += scatter;
      network = Math.max(network, inside) + cross;
      return network;
    });
    for (const at of crossed) inside = Math.max(inside, at) + gather;
    return inside;
  };

  const model = {
    allReduceSeconds({ algorithm, bytes, instances, each, tiers }) {
      if (algorithm === "two_tier") return twoTierSeconds(bytes, instances, each, tiers);
      return sum(eachSeconds(ALGORITHMS[algorithm](bytes, instances, each), tiers, each));
    },
    atBandwidth(tiers, bitsPerSecond) {
      if (bitsPerSecond === null) return tiers;
      const { alone, busy, at_once } = tiers.across;
      const beta = 8 / bitsPerSecond;
      const across = {
        alone: { alpha: alone.alpha, beta },
        busy: { alpha: busy.alpha, beta: at_once * beta },
        at_once,
      };
      return { inside: tiers.inside, across };
    },
    computeSeconds({ compute, images, bytes, instances, each, cores }) {
      const ofImages = (compute.per_image + compute.per_image_byte * bytes) * images;
      const alone = Math.max(0, compute.fixed + compute.per_byte * bytes + ofImages);
      return alone * Math.max(1, (instances * each) / (cores === null ? Infinity : cores));
    },
    // cores: null where each rank has its own.
    step(config) {
      const computing = model.computeSeconds(config);
      if (config.instances * config.each === 1) {
        return { computing, travelling: 0, hidden: 0, seconds: computing };
      }
      const travelling = model.allReduceSeconds(config);
      const shown = Math.max(0, travelling - config.overlap * computing);
      return { computing, travelling, hidden: travelling - shown, seconds: computing + shown };
    },
  };

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
    const own = ["input", "select", "button"].includes(tag) ? OWN_KEYS : {};
    return make(tag, { ...own, ...attributes }, children);
  };
  const svg = (tag, attributes = {}, ...children) =>
    make(tag, attributes, children, "http://www.w3.org/2000/svg");

  let ids = 0;
  const labelled = (text, control) => {
    control.id = `workshop-control-${Date.now().toString(36)}-${ids++}`;
    return el("div", { class: "field" }, el("label", { for: control.id }, text), control);
  };

  // A slider with buttons on both sides; `changed` gets its value, and is called at once.
  const slider = (label, least, most, changed) => {
    const input = el("input", { type: "range", min: least, max: most, value: least, step: 1 });
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
    changed(least);
    return row;
  };

  const number = (value) => {
    if (value >= 100) return value.toFixed(0);
    return value >= 10 ? value.toFixed(1) : value.toPrecision(2);
  };
  const milliseconds = (seconds) => `${number(1000 * seconds)} ms`;

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
      const done = sum(now.map((chunks) => chunks.filter((value) => value === complete).length));
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

  // ---------------------------------------------------------------- the timeline of ranks

  // data.spans: [{step, rank, kind: "compute" | "wait" | "communicate", start_ms, ms}].
  const timeline = (host, { spans }) => {
    const steps = [...new Set(spans.map((span) => span.step))].sort((a, b) => a - b);
    const ranks = [...new Set(spans.map((span) => span.rank))].sort((a, b) => a - b);
    const [left, right, lane] = [64, 410, 22];
    const height = ranks.length * (2 * lane + 18) + 34;
    const picture = svg("svg", { viewBox: `0 0 420 ${height}`, role: "img" });
    const says = el("p", { class: "says", "aria-live": "polite" });
    const legend = el("p", { class: "legend" });
    for (const [kind, text] of [["compute", "computes"], ["wait", "waits"], ["communicate", "all-reduce"]]) {
      const sample = svg("svg", { viewBox: "0 0 24 14", width: 24, height: 14, "aria-hidden": "true" },
        svg("rect", { x: 1, y: 1, width: 22, height: 12, class: kind }));
      legend.append(el("span", {}, sample, ` ${text}`));
    }

    const draw = (at) => {
      const step = steps[at];
      const parts = [];
      const shown = spans.filter((span) => span.step === step);
      const most = Math.max(...shown.map((span) => span.start_ms + span.ms)); // each step its own scale
      const across = (ms) => left + ((right - left) * ms) / most;
      const told = ranks.map((rank, row) => {
        const top = 8 + row * (2 * lane + 18);
        const mine = shown.filter((span) => span.rank === rank);
        parts.push(svg("text", { x: 4, y: top + lane + 4 }, `rank ${rank}`));
        for (const span of mine) {
          const y = top + (span.kind === "communicate" ? lane : 0);
          const box = { x: across(span.start_ms), y, height: lane - 3, class: span.kind };
          parts.push(svg("rect", { ...box, width: Math.max(1, across(span.ms) - left) }));
        }
        const total = (kind) => number(sum(mine.filter((s) => s.kind === kind).map((s) => s.ms)) || 0);
        return `Rank ${rank}: computes ${total("compute")} ms, waits ${total("wait")} ms; ` +
          `all-reduce ${total("communicate")} ms.`;
      });
      const base = height - 22;
      parts.push(svg("line", { x1: left, y1: base, x2: right, y2: base, class: "axis" }));
      for (const share of [0, 0.5, 1]) {
        const anchor = share === 1 ? "end" : share ? "middle" : "start";
        const text = { x: left + share * (right - left), y: base + 16, "text-anchor": anchor };
        parts.push(svg("text", text, `${number(share * most)} ms`));
      }
      const text = `Step ${step}. ${told.join(" ")}`;
      picture.replaceChildren(...parts);
      picture.setAttribute("aria-label", text);
      says.textContent = text;
    };

    host.append(slider("Step", 0, steps.length - 1, draw), legend, picture, says);
  };

  // ---------------------------------------------------------------- the calculator

  // data: {compute, tiers, bytes, images, cores, overlap, instances, each, algorithm,
  // measured_at}: what the reader's own run measured. measured_at: of the link, bit/s or null.
  const calculator = (host, data) => {
    const config = (changes) => {
      const made = { ...data, cores: null, ...changes };
      return { ...made, tiers: model.atBandwidth(data.tiers, made.rate ?? null) };
    };
    const asked = config({ instances: 4, each: 2, rate: 100e6 });
    const world = asked.instances * asked.each;
    const megabytes = number(data.bytes / 1e6);
    const question =
      `${asked.instances} instances with ${asked.each} ranks each, links of 100 Mbit/s, ` +
      `${megabytes} MB of gradients, ${data.images} images on each rank, ${data.algorithm}, nothing ` +
      "overlaps: how many milliseconds does a step take?";
    const guessed = el("input", { type: "text", inputmode: "decimal", size: 8 });
    const refused = el("p", { class: "says", role: "alert" });
    const gate = el(
      "form", {}, labelled(question, guessed), el("button", {}, "Compare my guess"), refused
    );
    host.append(gate);
    gate.addEventListener("submit", (event) => {
      event.preventDefault();
      const guess = Number(guessed.value.trim() || "nothing");
      if (!(guess > 0 && Number.isFinite(guess))) {
        refused.textContent = "Type a number above 0, such as 250.";
        return;
      }
      const answer = 1000 * model.step({ ...asked, overlap: 0 }).seconds;
      const factor = Math.max(guess / answer, answer / guess);
      const said = el(
        "p", { class: "says" },
        `Your guess: ${number(guess)} ms. The model: ${number(answer)} ms on ${world} ranks, ` +
          (factor < 1.1
            ? "which is close."
            : `so your guess is ${number(factor)} times too ${guess > answer ? "high" : "low"}.`)
      );
      gate.replaceWith(said);
      open(host, data, config);
    });
  };

  const open = (host, data, config) => {
    const choose = (label, name, choices, chosen) => {
      const box = el("select", { name });
      for (const [value, text] of choices) box.append(el("option", { value }, text));
      box.value = chosen;
      return [labelled(label, box), box];
    };
    const type = (label, name, value, least, most) => {
      const box = el("input", { type: "number", name, value, min: least, max: most, step: "any" });
      return [labelled(label, box), box];
    };
    const counts = (values) => values.map((value) => [String(value), String(value)]);
    const rates = [50, 100, 200, 400, 1000, 10000, 25000, 100000].map((mbit) => [
      String(mbit), mbit < 1000 ? `${mbit} Mbit/s` : `${mbit / 1000} Gbit/s`,
    ]);
    const measured = [["", "as measured"]];
    const cores = [["", "one per rank"]];
    if (data.cores) cores.push([String(data.cores), `${data.cores}, shared by all`]);
    const fields = {
      instances: choose("Instances", "instances", counts([1, 2, 4, 8, 16]), String(data.instances)),
      each: choose("Ranks on each", "each", counts([1, 2, 4, 8]), String(data.each)),
      rate: choose("Link of an instance", "rate", [...measured, ...rates], ""),
      algorithm: choose("All-reduce", "algorithm", counts(Object.keys(ALGORITHMS)), data.algorithm),
      megabytes: type("Gradients, MB", "megabytes", Number((data.bytes / 1e6).toPrecision(4)), 0.001, 100000),
      images: type("Images on each rank", "images", data.images, 1, 1000000),
      overlap: type("Overlap, %", "overlap", 100 * data.overlap, 0, 100),
      cores: choose("Cores", "cores", cores, ""),
    };
    const rows = el("tbody");
    const table = el(
      "table", {}, el("caption", {}, "A step by the model"), rows
    );
    const picture = svg("svg", { viewBox: "0 0 420 64", role: "img" });
    const says = el("p", { class: "says", "aria-live": "polite" });

    const update = () => {
      const value = Object.fromEntries(Object.entries(fields).map(([name, [, box]]) => [name, box.value]));
      const wrong = Object.values(fields).map(([, box]) => box).find((box) => !box.checkValidity() || box.value === "" && box.type === "number");
      if (wrong) {
        says.textContent = `${wrong.labels[0].textContent}: a number from ${wrong.min} to ${wrong.max}.`;
        return;
      }
      const changes = {
        instances: Number(value.instances), each: Number(value.each), algorithm: value.algorithm,
        bytes: 1e6 * Number(value.megabytes), images: Number(value.images),
        overlap: Number(value.overlap) / 100, rate: value.rate ? 1e6 * Number(value.rate) : null,
        cores: value.cores ? Number(value.cores) : null,
      };
      const found = model.step(config(changes));
      const one = model.step(config({ ...changes, instances: 1, each: 1 }));
      const ranks = changes.instances * changes.each;
      const speed = (ranks * changes.images) / found.seconds;
      const gain = speed / (changes.images / one.seconds);
      const told = {
        "Computing": milliseconds(found.computing),
        "All-reduce": milliseconds(found.travelling),
        "of it hidden by computing": milliseconds(found.hidden),
        "Step": milliseconds(found.seconds),
        "Images per second": number(speed),
        "Times as fast as one rank": `${gain.toFixed(2)} of ${ranks}`,
      };
      rows.replaceChildren(
        ...Object.entries(told).map(([name, text]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text)))
      );
      table.dataset.stepSeconds = String(found.seconds);
      const most = found.computing + found.travelling;
      const across = (seconds) => (410 * seconds) / most;
      const start = found.computing - found.hidden;
      picture.replaceChildren(
        svg("rect", { x: 2, y: 4, width: across(found.computing), height: 24, class: "compute" }),
        svg("rect", { x: 2 + across(start), y: 34, width: across(found.travelling), height: 24, class: "communicate" }),
        svg("text", { x: 8, y: 21 }, "computing"),
        ...(found.travelling ? [svg("text", { x: 8 + across(start), y: 51 }, "all-reduce")] : [])
      );
      picture.setAttribute(
        "aria-label",
        `Computing ${told.Computing}, all-reduce ${told["All-reduce"]}, of it ${told["of it hidden by computing"]} at the same time.`
      );
      says.textContent = `A step takes ${told.Step}; ${ranks} ranks are ${gain.toFixed(2)} times as fast as one.`;
    };
    const form = el("form", { class: "fields" }, ...Object.values(fields).map(([row]) => row));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", update);
    form.addEventListener("change", update);
    host.append(form, picture, table, says);
    update();
  };

  globalThis.workshopPieces = { ring, timeline, calculator, model };
})();
