// The page: what is chosen, played and dragged, from the address and back into it.
"use strict";

const Page = (() => {
  const element = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const FAST = 8; // seconds for a whole race
  const SLOW = 2; // seconds for a step
  const names = Object.keys(Optimizers.table);
  // What is shown: the state that an address says, and what follows from it.
  const shown = { state: null, scene: null, problem: null, races: [], view: null };
  let playing = 0; // the id of the next frame, 0 if paused
  let waiting = 0; // likewise of a redraw

  /** Run the races of the state, and draw. */
  function recompute() {
    const { state, scene } = shown;
    Object.assign(shown, Racing.runAll(state));
    for (const { name, lr } of shown.races) state.rates[name] = lr;
    // What a scene says stays, dimmed, when it is changed: the page must not move under a finger.
    if (scene) element("story").textContent = Scenes.tell(scene, shown.races);
    fillRates();
    render();
  }

  function render() {
    const { state } = shown;
    shown.view = Drawing.draw(shown);
    const [left, top] = shown.view.toPixels(state.x, state.y);
    Object.assign(element("start").style, { left: `${left}px`, top: `${top}px` });
    element("start").setAttribute("aria-label", `Start at x ${state.x}, y ${state.y}`);
    element("head").value = state.t;
    element("step").textContent = `${Math.floor(state.t)} of ${state.steps}`;
    if (!playing) Drawing.describe(shown);
  }

  /** Recompute at the next frame, however often it is asked for until then. */
  function soon() {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      recompute();
    });
  }

  /** Take over a change of the settings: controls, address, races. */
  function changed(changes) {
    Object.assign(shown.state, changes);
    shown.state.t = Math.min(shown.state.t, shown.state.steps);
    fillControls();
    remember();
    soon();
  }

  /** Write the state into the address, so that a scene can be sent. */
  function remember() {
    const address = Scenes.encode(shown.state);
    history.replaceState(null, "", `#${address}`);
    shown.scene = Scenes.find(shown.state);
    [...element("scenes").querySelectorAll("button")].forEach((button, i) => {
      if (shown.scene === Scenes.scenes[i]) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    element("story").classList.toggle("past", !shown.scene);
    element("changed").textContent = shown.scene
      ? ""
      : "Changed by you; the address leads back to it.";
  }

  // playing

  function play() {
    const { state } = shown;
    if (state.t >= state.steps) state.t = 0;
    let before = 0;
    const frame = (now) => {
      const seconds = before ? Math.min(0.1, (now - before) / 1000) : 0;
      before = now;
      const pace = state.speed === "slow" ? 1 / SLOW : state.steps / FAST;
      state.t = Math.min(state.steps, state.t + pace * seconds);
      if (state.t >= state.steps) return pause();
      playing = requestAnimationFrame(frame);
      return render();
    };
    cancelAnimationFrame(playing);
    playing = requestAnimationFrame(frame);
    element("play").textContent = "Pause";
  }

  function pause() {
    cancelAnimationFrame(playing);
    playing = 0;
    element("play").textContent = "Play";
    remember();
    render();
  }

  function seek(t) {
    shown.state.t = Math.max(0, Math.min(shown.state.steps, t));
    pause();
  }

  // choosing

  /** Show a state, from its beginning: played, unless the reader wants no motion. */
  function show(state) {
    cancelAnimationFrame(playing);
    playing = 0;
    element("play").textContent = "Play";
    shown.state = state;
    fillControls();
    remember();
    recompute();
  }

  function showScene(i) {
    element("note").hidden = true;
    show(Scenes.copy(Scenes.scenes[i].state));
    if (calm.matches) seek(shown.state.speed === "slow" ? 2 : shown.state.steps);
    else play();
  }

  /** Show what the address says; a note tells what of it could not be taken. */
  function showAddress() {
    const { state, notes } = Scenes.decode(Scenes.choose(location.hash, location.search));
    element("note").hidden = notes.length === 0;
    element("note").textContent = `Not all of the address could be taken: ${notes.join("; ")}.`;
    show(state);
    if (state.t > 0) return;
    if (calm.matches) seek(state.speed === "slow" ? 2 : state.steps);
    else play();
  }

  function moveStart(x, y) {
    const { centre, half } = shown.problem;
    const keep = (value, middle) => Math.max(middle - half, Math.min(middle + half, value));
    const round = (value) => Math.round(1e4 * value) / 1e4;
    changed({ x: round(keep(x, centre[0])), y: round(keep(y, centre[1])) });
  }

  // controls

  /** Put the state into the controls. */
  function fillControls() {
    const { state } = shown;
    const set = (id, value, text) => {
      element(id).value = value;
      element(id).nextElementSibling.textContent = text;
    };
    element("f").value = state.f;
    set("angle", state.angle, `${state.angle}°`);
    set("k", Math.log10(state.k), Construction.figure(state.k));
    element("k").disabled = Functions.table[state.f].condition === 0;
    set("noise", state.noise, String(state.noise));
    set("steps", state.steps, String(state.steps));
    element("head").max = state.steps;
    element("best").checked = state.best;
    element("speed").value = state.speed;
    element("seed").disabled = state.noise === 0;
  }

  function fillRates() {
    const { state } = shown;
    for (const name of names) {
      const rate = element(`rate-${name}`);
      element(`on-${name}`).checked = state.on.includes(name);
      rate.value = Math.log10(state.rates[name]);
      rate.disabled = state.best || !state.on.includes(name);
      rate.nextElementSibling.textContent = Construction.figure(state.rates[name]);
    }
  }

  function makeControls() {
    Scenes.scenes.forEach(({ title }, i) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.textContent = `${i + 1}. ${title}`;
      button.addEventListener("click", () => showScene(i));
      const item = document.createElement("li");
      item.append(button);
      element("scenes").append(item);
    });
    for (const [name, { label }] of Object.entries(Functions.table)) {
      element("f").append(new Option(label, name));
    }
    for (const name of names) element("optimizers").append(makeOptimizer(name));
    listen();
  }

  /** Return the line of an optimizer: whether it races, how it is drawn, and its rate. */
  function makeOptimizer(name) {
    const { label, tag = label, look, range } = Optimizers.table[name];
    const line = document.createElement("div");
    const dash = look.dash.join(" ");
    line.innerHTML = `
      <label class="check"><input type="checkbox" id="on-${name}">
        <svg viewBox="0 0 38 10" aria-hidden="true"><line x1="0" y1="5" x2="38" y2="5"
          stroke-width="${look.width}" stroke-dasharray="${dash}"/></svg> ${tag}</label>
      <input type="range" id="rate-${name}" min="${range[0]}" max="${range[1]}" step="0.05"
        aria-label="Rate of ${label}"><output></output>`;
    line.querySelector("line").style.stroke = `light-dark(${look.light}, ${look.dark})`;
    return line;
  }

  function listen() {
    const on = (id, event, act) => element(id).addEventListener(event, act);
    const number = (id) => Number(element(id).value);
    on("f", "change", () => {
      const { angle, k, x, y } = Scenes.usual(element("f").value);
      changed({ f: element("f").value, angle, k, x, y });
    });
    for (const id of ["angle", "noise", "steps"])
      on(id, "input", () => changed({ [id]: number(id) }));
    on("k", "input", () => changed({ k: Number((10 ** number("k")).toPrecision(3)) }));
    on("best", "change", () => changed({ best: element("best").checked }));
    on("speed", "change", () => changed({ speed: element("speed").value }));
    on("seed", "click", () => changed({ seed: (shown.state.seed % 9999) + 1 }));
    on("play", "click", () => (playing ? pause() : play()));
    on("head", "input", () => seek(number("head")));
    on("back", "click", () => seek(Math.ceil(shown.state.t) - 1));
    on("forth", "click", () => seek(Math.floor(shown.state.t) + 1));
    for (const name of names) {
      on(`on-${name}`, "change", () => {
        changed({ on: names.filter((one) => element(`on-${one}`).checked) });
      });
      on(`rate-${name}`, "input", () => {
        const rate = Number((10 ** number(`rate-${name}`)).toPrecision(3));
        changed({ rates: { ...shown.state.rates, [name]: rate } });
      });
    }
    on("copy", "click", copyLink);
    listenToPointer();
    addEventListener("keydown", pressed);
    addEventListener("hashchange", showAddress);
    new ResizeObserver(() => shown.problem && render()).observe(document.body);
    Drawing.onTheme(render);
  }

  async function copyLink() {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      element("copied").textContent = "Copied.";
    } catch {
      element("copied").textContent = "It is in the address bar.";
    }
  }

  function listenToPointer() {
    const [start, landscape] = [element("start"), element("landscape")];
    const moveTo = (event) => {
      const box = landscape.getBoundingClientRect();
      moveStart(...shown.view.toPlane(event.clientX - box.left, event.clientY - box.top));
    };
    start.addEventListener("pointerdown", (event) => {
      start.setPointerCapture(event.pointerId);
      if (playing || shown.state.t < 1) seek(shown.state.steps); // whole paths follow the hand
    });
    start.addEventListener("pointermove", (event) => {
      if (start.hasPointerCapture(event.pointerId)) moveTo(event);
    });
    landscape.addEventListener("click", moveTo);
  }

  /** Move the start with arrow keys, play with Space, choose scenes by their numbers. */
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target, key } = event;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
      key
    ];
    if (target === element("start") && way) {
      const by = shown.problem.half * (event.shiftKey ? 0.002 : 0.02);
      moveStart(shown.state.x + by * way[0], shown.state.y + by * way[1]);
    } else if (key === " " && !target.closest("button:not(#start), input, select, summary")) {
      if (playing) pause();
      else play();
    } else if (/^[1-6]$/.test(key) && !target.closest("select")) {
      showScene(Number(key) - 1);
    } else return;
    event.preventDefault();
  }

  makeControls();
  showAddress();
  return { shown, isPlaying: () => playing !== 0, recompute };
})();
