// Figures that the reader moves, by mouse, finger or arrow keys, each below the still picture of its idea.
// ABOUT.ID describes the one below the figure with the id ID: title, height, panels, sliders with their first values, how,
// and `model`, values => ({ marks, say, presets, numbers }):
//   marks  in drawing order, as many for all values: { line: [[x, y], ...] }, { area: [[x, y], ...] }, { point: [x, y] },
//          { text: "words", at: [x, y] }; with `panel` (0) and `kind` (a class of moving.css). A handle is a point with
//          `move: (x, y) => changes`, `name`, `told` (its value in words), and `upright` if it moves up and down only;
//   say    sentences, [kind, words]; presets: buttons, { words: changes }; numbers: what a test reads.
(() => {
  const XML = "http://www.w3.org/2000/svg";
  const clip = (x, low, high) => Math.min(high, Math.max(low, x));
  const make = (parent, tag, attributes = {}, words = "") => {
    const svg = parent.namespaceURI === XML || tag === "svg";
    const made = svg ? document.createElementNS(XML, tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words) made.textContent = words;
    parent.append(made);
    return made;
  };
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  const start = (id) => {
    const [still, about] = [document.getElementById(id), ABOUT[id]];
    if (!still) return;
    const figure = document.createElement("figure");
    figure.className = "moving";
    still.after(figure);
    const stage = make(figure, "div", { class: "moving-stage" });
    const first = Object.fromEntries(about.sliders.map((slider) => [slider.name, slider.value]));
    const values = { ...first };
    let svg, scales, pool, drawn; // drawn: the marks now on the screen

    // --- panels and axes, anew for each width, so that words keep their size ---
    const frame = () => {
      const width = Math.max(280, stage.clientWidth || 640);
      const [top, bottom, height] = [26, 46, Math.min(about.height, 0.72 * width + 80)];
      svg = make(stage, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": about.title });
      stage.replaceChildren(svg);
      const before = about.panels.map((panel) => (panel.bare ? 24 : 48)); // room for the numbers of an axis
      const room = width - before.reduce((sum, gap) => sum + gap, 36);
      let left = 0;
      pool = [];
      scales = about.panels.map((panel, i) => {
        const [wide, high] = [room * panel.part, height - top - bottom];
        left += before[i];
        const [x0, x1, y0, y1] = [...panel.x, ...panel.y];
        const scale = { left, wide, top, high, x0, x1, y0, y1 };
        scale.x = (x) => scale.left + ((x - x0) / (x1 - x0)) * wide;
        scale.y = (y) => top + high - ((y - y0) / (y1 - y0)) * high;
        scale.back = (px, py) => [
          x0 + ((px - scale.left) / wide) * (x1 - x0),
          y0 + ((top + high - py) / high) * (y1 - y0),
        ];
        const axes = make(svg, "g", { class: "axes", "aria-hidden": true });
        for (const [y, tick] of panel.yticks.map((tick) => [scale.y(tick), panel.bare ? "" : (panel.tick || String)(tick)])) {
          make(axes, "line", { x1: left, x2: left + wide, y1: y, y2: y });
          make(axes, "text", { x: left - 9, y: y + 4, "text-anchor": "end" }, tick);
        }
        for (const [x, tick] of panel.xticks.map((tick) => [scale.x(tick), (panel.tick || String)(tick)])) {
          make(axes, "line", { x1: x, x2: x, y1: top, y2: top + high });
          make(axes, "text", { x, y: top + high + 18, "text-anchor": "middle" }, tick);
        }
        const middle = { x: left + wide / 2, "text-anchor": "middle" };
        make(axes, "text", { ...middle, y: height - 8, class: "name" }, panel.xlabel);
        make(axes, "text", { ...middle, y: 14, class: "name" }, panel.title);
        const hole = make(svg, "clipPath", { id: `${id}-hole-${i}` });
        make(hole, "rect", { x: left, y: top, width: wide, height: high });
        left += wide;
        return scale;
      });
      draw();
    };

    // --- marks: made once per frame, then moved, so that a handle keeps its focus ---
    const handle = (g, i) => {
      make(g, "circle", { r: 22, class: "reach" }); // 44 pixels for a finger
      const [scale, change] = [scales[drawn[i].panel || 0], (x, y) => set(drawn[i].move(x, y))];
      const follow = (event) => {
        const [box, size] = [svg.getBoundingClientRect(), svg.viewBox.baseVal];
        const px = ((event.clientX - box.left) * size.width) / box.width;
        change(...scale.back(px, ((event.clientY - box.top) * size.height) / box.height));
      };
      g.addEventListener("pointerdown", (event) => {
        g.setPointerCapture(event.pointerId);
        g.focus();
        event.preventDefault();
      });
      g.addEventListener("pointermove", (event) => g.hasPointerCapture(event.pointerId) && follow(event));
      g.addEventListener("keydown", (event) => {
        if (!keys[event.key]) return;
        const [part, [x, y]] = [event.shiftKey ? 0.1 : 0.02, drawn[i].point];
        const [wide, high] = [scale.x1 - scale.x0, scale.y1 - scale.y0].map((size) => part * size);
        const [right, up] = keys[event.key];
        change(x + wide * right, y + high * (drawn[i].upright ? up + right : up));
        event.preventDefault();
      });
    };
    const draw = () => {
      const { marks, say, presets, numbers } = about.model(values);
      (drawn = marks).forEach((mark, i) => {
        const { x, y, y0, y1 } = scales[mark.panel || 0];
        const path = (mark.line || mark.area || []).map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`);
        if (!pool[i]) {
          pool[i] = make(svg, mark.point ? "g" : mark.text === undefined ? "path" : "text", { class: mark.kind });
          if (path.length) pool[i].setAttribute("clip-path", `url(#${id}-hole-${mark.panel || 0})`);
          if (mark.move) handle(pool[i], i);
          if (mark.point) make(pool[i], "circle", { r: mark.move ? 8 : 5 });
        }
        const to = path.length ? { d: `M${path.join("L")}${mark.area ? "Z" : ""}` } : {};
        if (mark.point) to.transform = `translate(${x(mark.point[0]).toFixed(1)} ${y(mark.point[1]).toFixed(1)})`;
        if (mark.text !== undefined) [to.x, to.y, pool[i].textContent] = [x(mark.at[0]), y(mark.at[1]) + 4, mark.text];
        if (mark.move) {
          Object.assign(to, { tabindex: 0, role: "slider", "aria-label": mark.name, "aria-valuetext": mark.told });
          Object.assign(to, { "aria-valuemin": y0, "aria-valuemax": y1, "aria-valuenow": mark.point[1].toFixed(2) });
        }
        for (const [key, value] of Object.entries(to)) pool[i].setAttribute(key, value);
      });
      say.forEach(([kind, sentence], i) => {
        const p = words.children[i] || make(words, "p");
        p.className = kind;
        if (p.textContent !== sentence) p.textContent = sentence; // so that only what is new is read aloud
      });
      for (const show of inputs) show();
      buttons.forEach((button, i) => (button.changes = i ? Object.values(presets)[i - 1] : first));
      figure.dataset.numbers = JSON.stringify(numbers);
    };
    const set = (changes) => {
      for (const { name, min, max } of about.sliders) if (name in changes) values[name] = clip(changes[name], min, max);
      draw();
    };

    // --- sliders, buttons, sentences ---
    const controls = make(figure, "div", { class: "moving-controls" });
    make(controls, "p", {}, about.how);
    const words = make(figure, "div", { class: "moving-words", "aria-live": "polite" });
    const more = make(figure, "details", { class: "moving-controls", ...(about.more ? {} : { hidden: "" }) });
    make(more, "summary", {}, about.more || "");
    const inputs = about.sliders.map(({ name, label, min, max, hidden, show = two }) => {
      const box = make(hidden ? more : controls, "label", {}, `${label} `);
      const shown = make(box, "b");
      const input = make(box, "input", { type: "range", min, max, step: 0.01, "aria-label": label });
      input.addEventListener("input", () => set({ [name]: Number(input.value) }));
      return () => ([input.value, shown.textContent] = [values[name], show(values[name])]);
    });
    const bar = make(controls, "div", { class: "moving-presets" });
    const buttons = ["start", ...Object.keys(about.model(values).presets)].map((name) => {
      const button = make(bar, "button", { type: "button" }, name);
      button.addEventListener("click", () => set(button.changes));
      return button;
    });
    make(figure, "figcaption", {}, about.title);
    new ResizeObserver(() => Math.abs(stage.clientWidth - svg.viewBox.baseVal.width) > 1 && frame()).observe(stage);
    frame();
  };
  // --- the figures ---
  const two = (x, digits = 2) => (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");
  const percent = (x) => `${Math.round(100 * x)} %`;
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const range = (n) => [...Array(n).keys()];
  // Normal quantiles of (i + 1/2) / n, to 0.0005 (Abramowitz and Stegun, 26.2.23).
  const normal = (n) =>
    range(n).map((i) => {
      const p = (i + 0.5) / n;
      const t = Math.sqrt(-2 * Math.log(Math.min(p, 1 - p)));
      const down = 1 + t * (1.432788 + t * (0.189269 + 0.001308 * t));
      return Math.sign(p - 0.5) * (t - (2.515517 + t * (0.802853 + 0.010328 * t)) / down);
    });
  const expit = (x) => 1 / (1 + Math.exp(-x));

  const worth = (() => {
    const z = normal(40);
    const scale = Math.sqrt(sum(z.map((q) => q * q)) / 40);
    const model = ({ log, rho }) => {
      const m = Math.round(10 ** log);
      const sd = 0.5 * Math.sqrt(1 / m + rho * (1 - 1 / m));
      const shares = z.map((q) => Math.min(1, Math.max(0, 0.5 + (sd * q) / scale)));
      const mean = sum(shares) / 40;
      const labels = (1000 * sum(shares.map((p) => (p - mean) ** 2))) / (40 * mean * (1 - mean));
      const random = 1000 / m;
      return {
        numbers: { shares, labels, m },
        presets: { "bags of 250, by lot": { log: Math.log10(250), rho: 0 }, "bags of 250 that differ": { log: Math.log10(250), rho: 0.1 } },
        say: [
          ["one", `1,000 people in ${Math.round(random)} bags of ${m}: worth ${Math.round(labels)} labels.`],
          ["", rho < 0.005 ? "The bags are drawn by lot: about one label for each bag, whatever its size."
            : `By lot they would be worth ${Math.round(random)}. What the bags differ beyond chance makes the rest.`],
        ],
        marks: [
          { kind: "soft", line: [[0.5, 0], [0.5, 0.62]] },
          ...shares.map((p, i) => ({ kind: "one", point: [p, 0.12 + 0.4 * ((7 * i) % 40) / 40] })),
          { kind: "one strong middle", text: `worth ${Math.round(labels)} labels`, at: [0.5, 0.82] },
        ],
      };
    };
    return {
      title: "Shares of 40 bags as dots between 0 and 1, and what all bags are worth in labels.", height: 260,
      panels: [{ part: 1, bare: true, x: [-0.02, 1.02], y: [0, 1], xticks: [0, 0.25, 0.5, 0.75, 1], yticks: [],
        title: "", xlabel: "share of the positive class in a bag" }],
      sliders: [
        { name: "log", label: "people in a bag (1 to 250)", min: 0, max: Math.log10(250), value: 1, show: (v) => String(Math.round(10 ** v)) },
        { name: "rho", label: "how much bags differ beyond chance (0: by lot, 1: pure)", min: 0, max: 1, value: 0 },
      ],
      how: "Make the bags larger, then let them differ.",
      model,
    };
  })();

  const tilt = {
    title: "Two bags with the same two bells of the classes: the more ill members a bag has, the farther its curve moves.", height: 380,
    panels: [{ part: 1, x: [-3, 3], y: [0, 1], xticks: [-3, -2, -1, 0, 1, 2, 3], yticks: [0, 0.5, 1],
      title: "probability of being ill, given the feature", xlabel: "feature" }],
    sliders: [
      { name: "p1", label: "bag 1: share of the ill", min: 0.02, max: 0.98, value: 0.2 },
      { name: "p2", label: "bag 2: share of the ill", min: 0.02, max: 0.98, value: 0.8 },
    ],
    how: "Move the share of a bag, or drag the ring on its curve.",
    model: ({ p1, p2 }) => {
      const x = range(61).map((i) => -3 + i / 10);
      const tilts = [p1, p2].map((p) => Math.log(p / (1 - p)));
      const curves = tilts.map((t) => x.map((at) => expit(2 * at + t))); // classes at −1 and 1, spread 1
      const borders = tilts.map((t) => -t / 2);
      const bell = (center) => x.map((at) => [at, 0.35 * Math.exp(-((at - center) ** 2) / 2)]);
      const names = ["one", "two"];
      return {
        numbers: { x, curves, borders },
        presets: { "equal shares": { p1: 0.5, p2: 0.5 }, "rare in both": { p1: 0.05, p2: 0.1 } },
        say: [
          ...names.map((kind, k) => [kind, `Bag ${k + 1}: ${percent([p1, p2][k])} ill, its curve is moved by ${two(tilts[k])} in log-odds; ill from ${two(borders[k])} on.`]),
          ["", Math.abs(p1 - p2) < 0.01 ? "With equal shares both curves are one: the bag says nothing of a member."
            : "The curves have one shape. Only their place differs: that is the tilt of a bag."],
        ],
        marks: [
          { kind: "dashed", line: bell(-1) }, { kind: "dashed", line: bell(1) },
          { kind: "soft middle", text: "healthy", at: [-1, 0.4] }, { kind: "soft middle", text: "ill", at: [1, 0.4] },
          { kind: "tick", line: [[-3, 0.5], [3, 0.5]] },
          ...names.map((kind, k) => ({ kind, line: x.map((at, i) => [at, curves[k][i]]) })),
          ...names.map((kind, k) => ({ kind: `${kind} hollow`, point: [0, expit(tilts[k])], upright: true, name: `Curve of bag ${k + 1} at 0`,
            told: two(expit(tilts[k])), move: (_, y) => ({ [`p${k + 1}`]: y }) })),
        ],
      };
    },
  };

  const means = {
    title: "Two bags as points, share against mean. The line through them ends at the means of the two classes.", height: 400,
    panels: [{ part: 1, x: [0, 1], y: [0, 4], xticks: [0, 0.25, 0.5, 0.75, 1], yticks: [0, 1, 2, 3, 4],
      title: "mean of the feature in a bag", xlabel: "share of the ill in a bag" }],
    sliders: [
      { name: "s1", label: "bag 1: share of the ill", min: 0.02, max: 0.98, value: 0.25 },
      { name: "m1", label: "bag 1: mean", min: 0, max: 4, value: 1.25 },
      { name: "s2", label: "bag 2: share of the ill", min: 0.02, max: 0.98, value: 0.75 },
      { name: "m2", label: "bag 2: mean", min: 0, max: 4, value: 2.25 },
    ],
    how: "Drag a bag. The open rings are the means of the healthy (share 0) and of the ill (share 1), which no bag shows.",
    model: ({ s1, m1, s2, m2 }) => {
      const gap = Math.abs(s2 - s1) < 0.001 ? 0.001 : s2 - s1;
      const slope = (m2 - m1) / gap;
      const ends = [m1 - slope * s1, m1 + slope * (1 - s1)];
      return {
        numbers: { ends },
        presets: { "shares close together": { s1: 0.45, s2: 0.55, m1: 1.65, m2: 1.85 }, "a little noise in one mean": { s1: 0.45, s2: 0.55, m1: 1.65, m2: 2.05 } },
        say: [
          ["all", `Mean of the healthy ${two(ends[0])}, of the ill ${two(ends[1])}.`],
          ["", `${two(s1)} × ${two(ends[1])} + ${two(1 - s1)} × ${two(ends[0])} = ${two(m1)}, the mean of bag 1.`],
          ["", Math.abs(gap) < 0.15 ? "The shares are close together: a small error of one mean moves both ends far." : "The shares are far apart: an error of a mean moves the ends little."],
        ],
        marks: [
          { kind: "all", line: [[0, ends[0]], [1, ends[1]]] },
          { kind: "all hollow", point: [0, ends[0]] }, { kind: "all hollow", point: [1, ends[1]] },
          { kind: "all strong", text: "the healthy", at: [0.03, Math.min(3.8, Math.max(0.2, ends[0] + 0.25))] },
          { kind: "all strong end", text: "the ill", at: [0.97, Math.min(3.8, Math.max(0.2, ends[1] + 0.25))] },
          ...[["one", s1, m1], ["two", s2, m2]].map(([kind, s, m], k) => ({ kind: `${kind} middle strong`, text: `bag ${k + 1}`, at: [s, m - 0.32] })),
          ...[["one", s1, m1], ["two", s2, m2]].map(([kind, s, m], k) => ({ kind, point: [s, m], name: `Bag ${k + 1}`,
            told: `share ${two(s)}, mean ${two(m)}`, move: (x, y) => ({ [`s${k + 1}`]: x, [`m${k + 1}`]: y }) })),
        ],
      };
    },
  };

  const precincts = (() => {
    const n = [1000, 1000];
    const model = (v) => {
      const [s, y, both] = [[v.s1, v.s2], [v.y1, v.y2], [0, 1]];
      const low = both.map((k) => Math.max(0, (y[k] - 1 + s[k]) / s[k]));
      const high = both.map((k) => Math.min(1, y[k] / s[k]));
      const inside = (k, D) => Math.min(high[k], Math.max(low[k], y[k] + (1 - s[k]) * D)); // rate in the group
      const rest = (k, D) => (y[k] - s[k] * inside(k, D)) / (1 - s[k]);
      const members = both.map((k) => n[k] * s[k]);
      const rate = (D) => (members[0] * inside(0, D) + members[1] * inside(1, D)) / (members[0] + members[1]);
      const [from, to] = [Math.min(v.D / 2, v.D) - v.limit, Math.max(v.D / 2, v.D) + v.limit];
      const slope = (y[1] - y[0]) / (s[1] - s[0] || 1e-9);
      const [name, R, even] = [["one", "two"], rate(v.D), rate(0)];
      const cut = both.filter((k) => Math.abs(inside(k, v.D) - y[k] - (1 - s[k]) * v.D) > 1e-9);
      const lies = Math.abs(v.D - slope) < 0.006 ? "Goodman: both lines are one. The whole relation between the precincts is a difference within them."
        : Math.abs(v.D) < 0.006 ? "Nobody differs from the neighbors: the whole relation is one of places."
        : v.D * slope < 0 ? "Robinson's sign: within precincts the relation is the reverse of that between them."
        : "A part of the relation is a difference within precincts, the rest is one of places.";
      return {
        numbers: { inside: both.map((k) => inside(k, v.D)), rest: both.map((k) => rest(k, v.D)), rate: R, even,
          band: [rate(from), rate(to)], bounds: [rate(-99), rate(99)], slope },
        presets: { Goodman: { D: slope }, "neighbors alike": { D: 0 }, "Robinson's sign": { D: -slope / 5 } },
        say: [
          ...both.map((k) => [name[k], `Precinct ${k + 1}: ${two(s[k])} × ${two(inside(k, v.D))} + ${two(1 - s[k])} × ` +
            `${two(rest(k, v.D))} = ${two(y[k])}, as published.${cut.includes(k) ? " Cut at its bound: no larger difference is possible." : ""}`]),
          ["all", `Rate of the group: ${two(R)}; band ${two(rate(from))} to ${two(rate(to))}; bounds ${two(rate(-99))} to ${two(rate(99))}.`],
          ["", lies],
        ],
        marks: [
          ...both.map((k) => ({ kind: `fan ${name[k]}`, area: [[0, rest(k, from)], [1, inside(k, from)], [1, inside(k, to)], [0, rest(k, to)]] })),
          { kind: "dashed", line: [[0, y[0] - slope * s[0]], [1, y[0] + slope * (1 - s[0])]] },
          ...both.map((k) => ({ kind: name[k], line: [[0, rest(k, v.D)], [1, inside(k, v.D)]] })),
          { kind: "strong", text: "in the rest", at: [0.015, 0.95] },
          { kind: "strong end", text: "in the group", at: [0.985, 0.95] },
          { kind: "thin all", panel: 1, line: [[0.5, rate(-99)], [0.5, rate(99)]] },
          { kind: "thick all", panel: 1, line: [[0.5, rate(from)], [0.5, rate(to)]] },
          { kind: "tick", panel: 1, line: [[0.28, even], [0.72, even]] },
          { kind: "all", panel: 1, point: [0.5, R] },
          { kind: "all strong", panel: 1, text: two(R), at: [0.8, R] },
          ...both.map((k) => ({ kind: `${name[k]} hollow`, point: [0, rest(k, v.D)] })),
          ...both.map((k) => ({ kind: `${name[k]} middle strong`, text: `precinct ${k + 1}`, at: [s[k] + (k ? -0.06 : 0.06), y[k] + (k ? -0.09 : 0.09)] })),
          ...both.map((k) => ({ kind: `${name[k]} hollow`, point: [1, inside(k, v.D)], name: `Rate in the group, precinct ${k + 1}`,
            told: two(inside(k, v.D)), upright: true, move: (_, at) => ({ D: (at - y[k]) / (1 - s[k]) }) })),
          ...both.map((k) => ({ kind: name[k], point: [s[k], y[k]], name: `Published shares, precinct ${k + 1}`,
            told: `share of the group ${two(s[k])}, share of the class ${two(y[k])}`, move: (at, up) => ({ [`s${k + 1}`]: at, [`y${k + 1}`]: up }) })),
        ],
      };
    };
    return {
      title: "Two precincts: the published share of each is a point. A line through each point shows the rate in the rest and in the group for an assumed difference within precincts.",
      height: 430,
      panels: [
        { part: 0.8, x: [0, 1], y: [0, 1], xticks: [0, 0.25, 0.5, 0.75, 1], yticks: [0, 0.25, 0.5, 0.75, 1],
          title: "rate of the class", xlabel: "share of the group" },
        { part: 0.2, bare: true, x: [0, 1], y: [0, 1], xticks: [], yticks: [0, 0.25, 0.5, 0.75, 1],
          title: "whole group", xlabel: "both precincts" }
      ],
      sliders: [
        { name: "D", label: "difference within precincts, D", min: -0.4, max: 0.8, value: 0.25 },
        { name: "limit", label: "λ: how wrong D may be", min: 0, max: 0.4, value: 0.1 },
        { name: "s1", label: "precinct 1: share of the group", min: 0.05, max: 0.95, value: 0.2, hidden: true },
        { name: "y1", label: "precinct 1: share of the class", min: 0.02, max: 0.98, value: 0.3, hidden: true },
        { name: "s2", label: "precinct 2: share of the group", min: 0.05, max: 0.95, value: 0.8, hidden: true },
        { name: "y2", label: "precinct 2: share of the class", min: 0.02, max: 0.98, value: 0.6, hidden: true }
      ],
      how: "Drag a ring at the right edge, or move D: the rate in the group less the rate in the rest of the same precinct.",
      more: "Change the published shares (or drag the two full points)",
      model,
    };
  })();

  const alike = (() => {
    const z = normal(80).map((_, i, all) => all[(i * 37) % 80]); // in a mixed order
    const common = normal(8).map((_, i, all) => all[(i * 3) % 8]);
    const model = ({ rho, log }) => {
      const m = Math.round(10 ** log);
      const x = range(80).map((i) => Math.sqrt(rho) * common[Math.floor(i / 10)] + Math.sqrt(1 - rho) * z[i]);
      const bags = range(8).map((b) => x.slice(10 * b, 10 * b + 10));
      const measured = sum(bags.map((own) => sum(own) ** 2 / 10)) / (8 * (sum(x.map((v) => v * v)) / 80));
      const curve = (r) => range(41).map((i) => [i / 20, Math.log10(1 + r * (10 ** (i / 20) - 1))]);
      const labels = 1 + rho * (m - 1);
      return {
        numbers: { x, measured, labels, m },
        presets: { "by lot": { rho: 0 }, "one tenth": { rho: 0.1 }, "all alike": { rho: 1 } },
        say: [
          ["one", `A bag of ${m} is worth ${labels < 10 ? two(labels, 1) : Math.round(labels)} labels for the slope, and ${m} for the offset.`],
          ["", rho < 0.005 ? "By lot: one label for the slope, whatever the size of the bag." : `1 + ${two(rho)} × (${m} − 1): each further member adds ${two(rho)} labels.`],
        ],
        marks: [
          ...x.map((at, i) => ({ kind: "one", point: [Math.max(-2.9, Math.min(2.9, at)), 7.5 - Math.floor(i / 10)] })),
          { kind: "dashed", panel: 1, line: [[0, 0], [2, 2]] },
          { kind: "soft end", panel: 1, text: "offset, and labels", at: [1.75, 1.93] },
          { kind: "one", panel: 1, line: curve(rho) },
          { kind: "one hollow", panel: 1, point: [log, Math.log10(labels)], name: "Size of the bag", told: `${m}, worth ${two(labels, 1)} labels`,
            move: (at) => ({ log: at }) },
        ],
      };
    };
    return {
      title: "Left, eight bags of ten as rows of dots; right, the worth of a bag in labels against its size.", height: 380,
      panels: [
        { part: 0.5, bare: true, x: [-3, 3], y: [0, 8], xticks: [-2, 0, 2], yticks: [], title: "eight bags of ten", xlabel: "feature" },
        { part: 0.5, x: [0, 2], y: [0, 2], xticks: [0, 1, 2], yticks: [0, 1, 2], tick: (v) => String(10 ** v),
          title: "worth for the slope, labels", xlabel: "size of the bag" },
      ],
      sliders: [
        { name: "rho", label: "how alike the members of a bag are (0: by lot)", min: 0, max: 1, value: 0 },
        { name: "log", label: "size of the bag (1 to 100)", min: 0, max: 2, value: 1, show: (v) => String(Math.round(10 ** v)) },
      ],
      how: "Make the members of each bag more alike.",
      model,
    };
  })();

  const ABOUT = {
    "fig-prop-glance": worth, "fig-tax-posteriors": tilt, "fig-mean-map-line": means,
    "fig-ecological-hand": precincts, "fig-theory-worth": alike,
  };

  const all = () => Object.keys(ABOUT).forEach(start);
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", all) : all();
})();
