// All pictures of a moment: canvases in the size of the window, the theme, words for who cannot see.
"use strict";

const Drawing = (() => {
  const element = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const LOWEST = 1e-16; // losses under this are drawn at it
  const ground = new OffscreenCanvas(1, 1);
  let drawnGround = "";
  let theme = makeTheme();

  /** Return the colours and fonts of the ground that the reader has chosen. */
  function makeTheme() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const kind = dark.matches ? "dark" : "light";
    const colour = (name) => Optimizers.table[name].look[kind];
    const own = dark.matches
      ? { floor: [58, 74, 92], wall: [20, 23, 27], contour: "#56616d", halo: "#14171bcc" }
      : { floor: [255, 255, 255], wall: [201, 211, 220], contour: "#9fabb6", halo: "#ffffffcc" };
    return {
      ...own,
      ...{ colour, hidden: colour("hvadam"), ink: read("--ink"), muted: read("--muted") },
      ...{ faint: read("--faint"), grid: read("--grid"), rule: read("--muted") },
      font: "600 13px system-ui, sans-serif",
      small: "12px system-ui, sans-serif",
    };
  }

  /** Return a canvas's context in CSS pixels, after giving it as many as it has room for. */
  function prepare(canvas) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { context, width, height, ratio };
  }

  /** Draw everything at the head; return the view of the landscape. */
  function draw({ state, problem, races }) {
    const view = drawLandscape(state, problem, races);
    const ours = races.find((race) => race.hidden);
    const foot = prepare(element("construction"));
    if (ours) Construction.draw(foot.context, ours, state.t, foot.width, foot.height, theme);
    else foot.context.clearRect(0, 0, foot.width, foot.height);
    element("event").textContent = ours
      ? Construction.tell(ours, state.t)
      : "Choose HVAdam to see its hidden vector.";
    drawLosses(state, races);
    drawHidden(state, ours);
    return view;
  }

  function drawLandscape(state, problem, races) {
    const { context, width, ratio } = prepare(element("landscape"));
    const view = Landscape.makeView(problem, width);
    const wanted = [state.f, state.angle, state.k, width, ratio, dark.matches].join();
    if (drawnGround !== wanted) {
      ground.width = ground.height = Math.round(width * ratio);
      const below = ground.getContext("2d");
      below.setTransform(ratio, 0, 0, ratio, 0, 0);
      Landscape.drawGround(below, problem, view, theme);
      drawnGround = wanted;
    }
    context.drawImage(ground, 0, 0, width, width);
    Landscape.drawPaths(context, races, state.t, view, theme);
    const ours = races.find((race) => race.hidden);
    if (ours) Landscape.drawArrows(context, ours, state.t, view, theme);
    return view;
  }

  function drawLosses(state, races) {
    const { context, width, height } = prepare(element("loss"));
    const lines = races.map((race) => {
      const { look, label, tag = label } = Optimizers.table[race.name];
      return { values: race.loss, colour: theme.colour(race.name), ...dashes(look), label: tag };
    });
    const [low, high] = Curves.range(
      lines.map((line) => line.values),
      LOWEST,
    );
    const options = { steps: state.steps, head: state.t, low, high, log: true };
    Curves.draw(context, width, height, lines, options, theme);
  }

  const dashes = (look) => ({ dash: look.dash, width: Math.min(2.6, look.width) });

  function drawHidden(state, ours) {
    const [alignment, gain] = ["alignment", "gain"].map((id) => prepare(element(id)));
    const empty = new Float64Array(0);
    const { cosine = empty, delta = empty, age = empty, events = [] } = ours?.hidden ?? {};
    const mean = delta.map((one, n) => (age[n] > 0 ? one / Optimizers.BIAS2[age[n]] : NaN));
    const marks = events.flatMap((event, n) => (event === "restart" ? [n] : []));
    const common = { steps: state.steps, head: state.t };
    const lines = [
      {
        values: cosine.map((one, n) => (n ? one : NaN)),
        colour: theme.muted,
        dash: [],
        width: 1,
        label: "cosine",
      },
      { values: mean, colour: theme.hidden, dash: [], width: 2.6, label: "average" },
    ];
    const low = { ...common, low: 0, high: 1, log: false, marks, rule: Optimizers.THRESHOLD };
    Curves.draw(alignment.context, alignment.width, alignment.height, lines, low, theme);
    const gains = (ours?.hidden.gain ?? empty).map((one) => (one > 0 ? one : NaN));
    const line = { values: gains, colour: theme.hidden, dash: [], width: 2.6, label: "" };
    const [least, most] = Curves.range([gains], 1e-3);
    const log = { ...common, low: least, high: Math.max(most, 1), log: true };
    Curves.draw(gain.context, gain.width, gain.height, [line], log, theme);
  }

  /** Put the pictures in words, and their numbers in a table. */
  function describe({ state, races }) {
    const n = Math.floor(state.t);
    const figure = Construction.figure;
    const at = (race, step) => (step >= race.diverged ? "diverged" : figure(race.loss[step]));
    const label = (race) => Optimizers.table[race.name].label;
    const losses = races.map((race) => `${label(race)} ${at(race, n)}`).join(", ");
    const says = (id, text) => element(id).setAttribute("aria-label", text);
    const name = Functions.table[state.f].label;
    says(
      "landscape",
      `Contours of ${name}, turned by ${state.angle}°, with paths. Loss at step ${n}: ${losses}.`,
    );
    says("loss", `Loss by step. At step ${n}: ${losses}.`);
    const ours = races.find((race) => race.hidden);
    const restarts = ours
      ? `Restarts by step ${n}: ${ours.hidden.restarts[n] || 0}.`
      : "HVAdam is not shown.";
    says("construction", ours ? Construction.tell(ours, state.t) : restarts);
    says(
      "alignment",
      ours
        ? `Cosine of v and m̂ at step ${n}: ${figure(ours.hidden.cosine[n])}. ${restarts}`
        : restarts,
    );
    says(
      "gain",
      ours ? `Gain of the hidden step at step ${n}: ${figure(ours.hidden.gain[n])}.` : restarts,
    );
    tabulate(state, races, ours, at, label);
  }

  function tabulate(state, races, ours, at, label) {
    const { figure } = Construction;
    const heads = ["step", ...races.map((race) => `${label(race)}, loss`)];
    if (ours) heads.push("alignment", "gain", "restarts");
    const every = state.steps / 10;
    const rows = Array.from({ length: 11 }, (_, i) => Math.round(i * every)).map((n) => {
      const { cosine, gain, restarts } = ours?.hidden ?? {};
      const more = ours
        ? [cosine, gain, restarts].map((column) => figure(column[n]))
        : [];
      return [String(n), ...races.map((race) => at(race, n)), ...more];
    });
    const end = (race) => (race.diverged < Infinity ? "diverged" : figure(Racing.end(race.loss)));
    rows.push(["mean of the last tenth", ...races.map(end), ...(ours ? ["", "", ""] : [])]);
    const rates = races.map((race) => `${label(race)} ${figure(race.lr)}`).join(", ");
    const table = element("table");
    table.replaceChildren();
    table.createCaption().textContent = races.length
      ? `Rates: ${rates}.`
      : "No optimizer is chosen.";
    const row = table.createTHead().insertRow();
    for (const text of heads) row.append(cell("th", text, "col"));
    const body = table.createTBody();
    for (const [n, ...values] of rows) {
      const line = body.insertRow();
      line.append(cell("th", n, "row"), ...values.map((value) => cell("td", value)));
    }
  }

  function cell(tag, text, scope) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (scope) made.scope = scope;
    return made;
  }

  /** Call when the reader changes between light and dark. */
  function onTheme(redraw) {
    dark.addEventListener("change", () => {
      theme = makeTheme();
      redraw();
    });
  }

  return { draw, describe, onTheme };
})();
