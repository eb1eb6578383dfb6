// What the page shows, as an address says it, and the six scenes that tell the story.
"use strict";

const Scenes = (() => {
  // Numbers of an address, each with the range it must lie in.
  const RANGES = {
    angle: [-90, 90],
    k: [1, 1000],
    noise: [0, 20],
    seed: [1, 9999],
    steps: [50, Optimizers.MOST_STEPS],
    x: [-10, 10],
    y: [-10, 10],
    t: [0, Optimizers.MOST_STEPS],
  };
  const WHOLE = ["seed", "steps"];
  const RATE = [1e-4, 3.2];
  const SPEEDS = ["slow", "fast"];
  const KEYS = ["f", "angle", "k", "noise", "seed", "steps", "x", "y", "on", "lr", "speed"];
  const names = Object.keys(Optimizers.table);

  /** Return the usual state for a function, changed as told. */
  function usual(f, changes = {}) {
    const { angle, condition, start } = Functions.table[f];
    const rates = Object.fromEntries(names.map((name) => [name, Optimizers.table[name].lr]));
    const plain = { f, angle, k: condition || 40, noise: 0, seed: 1, steps: 300, t: 0 };
    const [x, y] = start;
    return {
      ...plain,
      x,
      y,
      on: ["adam", "hvadam"],
      best: false,
      rates,
      speed: "fast",
      ...changes,
    };
  }

  const scenes = [
    {
      title: "The valley on the axis",
      text:
        "The floor lies along an axis, so one coordinate is quiet and the other noisy. Adam, which " +
        "gives each coordinate a step of its own, runs down it, and HVAdam has nothing to add.",
      state: usual("fig3", { angle: 0, x: -0.35, y: 1.2 }),
    },
    {
      title: "Turned: Adam stalls",
      text:
        "The same valley and start, turned by 45°: now both coordinates see the walls, and Adam slows " +
        "both of them down. HVAdam finds what the zigzag has in common, and after 300 steps its loss " +
        "is a small part of Adam's.",
      state: usual("fig3", { x: 0.601, y: 1.096 }),
    },
    {
      title: "How v finds the way",
      text:
        "Draw the line through the old v and the momentum m̂: the point of it nearest to 0 is the new " +
        "v. Two steps between the walls are enough for it to point along the floor.",
      state: usual("fig3", { x: 0.8429, y: 0.8542, steps: 60, on: ["hvadam"], speed: "slow" }),
    },
    {
      title: "Noise drowns it",
      text:
        "Noise as large as the slopes shortens v step by step, until nothing is left to agree with, and " +
        "the gain stays at its floor. What is left of HVAdam is its adaptive step; AdaBelief ends " +
        "lower.",
      state: usual("fig3", { x: 0.601, y: 1.096, noise: 6, on: ["adam", "adabelief", "hvadam"] }),
    },
    {
      title: "Shrinking gradients",
      text:
        "In a round bowl gradients keep their direction and only shrink, so the line through v and m̂ " +
        "passes close by 0, and v collapses onto it. The alignment falls, v restarts at every second " +
        "step, and never earns a gain.",
      state: usual("quadratic", { k: 1, on: ["sgd", "adam", "hvadam"] }),
    },
    {
      title: "Where HVAdam loses",
      text:
        "The paper's narrow valley f2, 1000 steps, and for everyone the rate that ends lowest. Adam, " +
        "AdaBelief and plain momentum end below HVAdam: a fair search takes its lead away.",
      state: usual("f2", { steps: 1000, on: [...names], best: true }),
    },
  ];

  const short = (number) => String(Number.parseFloat(number.toPrecision(6)));

  /** Return a state as an address, by its scene if it is one's. */
  function encode(state) {
    const words = spell(state);
    const scene = scenes.findIndex((one) => spell(one.state) === words);
    const head = state.t > 0 ? `&t=${short(state.t)}` : "";
    return (scene < 0 ? words : `scene=${scene + 1}`) + head;
  }

  function spell(state) {
    const lr = state.best ? "best" : state.on.map((name) => short(state.rates[name])).join(",");
    const values = { ...state, on: state.on.join(","), lr };
    return KEYS.map((key) => {
      const value = values[key];
      return `${key}=${typeof value === "number" ? short(value) : value}`;
    }).join("&");
  }

  /** Return the state of an address, and a sentence for everything in it that could not be taken. */
  function decode(address) {
    const given = new Map(new URLSearchParams(address));
    const notes = [];
    if (given.size === 0) return { state: copy(scenes[0].state), notes };
    const state = begin(given, notes);
    given.delete("scene");
    given.delete("f");
    for (const [key, value] of given) {
      const why = take(state, key, value);
      if (why) notes.push(why);
    }
    if (state.t > state.steps) {
      notes.push(`t must be at most steps, ${state.steps}, got ${state.t}`);
      state.t = 0;
    }
    return { state, notes };
  }

  /** Return what an address starts from: a scene, or a function and all that is usual for it. */
  function begin(given, notes) {
    const number = Number(given.get("scene"));
    if (scenes[number - 1]) return copy(scenes[number - 1].state);
    if (given.has("scene")) {
      notes.push(`scene must be 1 to ${scenes.length}, got “${given.get("scene")}”`);
      if (given.size === 1) return copy(scenes[0].state);
    }
    const f = given.get("f");
    if (f !== undefined && !Object.hasOwn(Functions.table, f)) {
      notes.push(`f must be one of ${Object.keys(Functions.table).join(", ")}, got “${f}”`);
    }
    const missing = KEYS.filter((key) => !given.has(key));
    if (missing.length > 0) notes.push(`not given, and taken as usual: ${missing.join(", ")}`);
    return usual(Object.hasOwn(Functions.table, f ?? "") ? f : "f2");
  }

  /** Take one value of an address into the state; return why not, if not. */
  function take(state, key, value) {
    if (key in RANGES) return takeNumber(state, key, value);
    if (key === "on") {
      const chosen = names.filter((name) => value.split(",").includes(name));
      const unknown = value.split(",").filter((name) => !names.includes(name));
      if (unknown.length > 0) return `on must name some of ${names.join(", ")}, got “${value}”`;
      state.on = chosen;
      return "";
    }
    if (key === "lr") return takeRates(state, value);
    if (key === "speed") {
      if (!SPEEDS.includes(value)) return `speed must be slow or fast, got “${value}”`;
      state.speed = value;
      return "";
    }
    return `“${key}” is not known`;
  }

  function takeNumber(state, key, value) {
    const number = value.trim() === "" ? NaN : Number(value);
    const [low, high] = RANGES[key];
    const whole = !WHOLE.includes(key) || Number.isInteger(number);
    if (!(number >= low && number <= high && whole)) {
      const kind = WHOLE.includes(key) ? "a whole number" : "a number";
      return `${key} must be ${kind} from ${low} to ${high}, got “${value}”`;
    }
    state[key] = number;
    return "";
  }

  /** Take rates in the order of the optimizers, which an address names before. */
  function takeRates(state, value) {
    state.best = value === "best";
    if (state.best) return "";
    const rates = value.split(",").map((one) => (one.trim() === "" ? NaN : Number(one)));
    const fit = rates.every((rate) => rate >= RATE[0] && rate <= RATE[1]);
    if (!fit || rates.length !== state.on.length) {
      return `lr must be “best” or a rate from ${RATE[0]} to ${RATE[1]} for each, got “${value}”`;
    }
    state.on.forEach((name, i) => (state.rates[name] = rates[i]));
    return "";
  }

  const copy = (state) => structuredClone(state);

  return { scenes, usual, encode, decode, copy, RANGES };
})();
