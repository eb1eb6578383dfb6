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
  const OURS = ["adam", "hvadam", "no_hidden_step"];
  const RATES = Object.fromEntries(names.map((name) => [name, Optimizers.table[name].lr]));

  /** Return the usual state for a function, changed as told. */
  function usual(f, changes = {}) {
    const { angle, condition, start } = Functions.table[f];
    const plain = { f, angle, k: condition || 40, noise: 0, seed: 1, steps: 300, t: 0 };
    const [x, y] = start;
    return {
      ...plain,
      x,
      y,
      on: ["adam", "hvadam"],
      best: false,
      rates: { ...RATES },
      speed: "fast",
      ...changes,
    };
  }

  // A scene says sentences. One that states a number or a comparison is a claim: numbers stand in
  // it as {readings} of the races, and what it compares is in `holds`, which a test computes:
  // "hvadam < 0.2 adam" for a loss under a fifth of Adam's. `at` is a step or "end", the mean over
  // the last tenth of the steps; where losses are compared, a row of the page's table.
  const scenes = [
    {
      title: "The valley on the axis",
      says: [
        "The floor lies along an axis: one coordinate sees a steady slope, the other the walls.",
        {
          words:
            "HVAdam, which divides by how far gradients are from v, runs down what is steady: at " +
            "{at} its loss is {hvadam}, Adam's {adam}. Its hidden step has little part in that: without " +
            "it the loss is {no_hidden_step}.",
          at: 30,
          holds: [
            "hvadam < 0.2 adam",
            "hvadam < 1.1 no_hidden_step",
            "no_hidden_step < 1.1 hvadam",
          ],
        },
        {
          words:
            "Over {at} all jump about the minimum: {adam} for Adam, {hvadam} with and " +
            "{no_hidden_step} without the hidden step.",
          at: "end",
          holds: ["adam < 0.02", "hvadam < 0.02", "no_hidden_step < 0.02"],
        },
      ],
      state: usual("fig3", { angle: 0, x: -0.35, y: 1.2, on: OURS }),
    },
    {
      title: "The valley turned",
      says: [
        "That valley and its start, turned by {angle}°: now both coordinates see the walls.",
        {
          words:
            "At {at} Adam is at {adam} and HVAdam at {hvadam}, by what it divides by: without " +
            "its hidden step it is at {no_hidden_step} too.",
          at: 100,
          holds: [
            "hvadam < 0.9 adam",
            "hvadam < 1.01 no_hidden_step",
            "no_hidden_step < 1.01 hvadam",
          ],
        },
        {
          words:
            "But v keeps pointing along the floor, with a cosine of {along}, and by {at} has earned " +
            "a gain of {gain}: now the hidden step is what counts. HVAdam is at {hvadam}, without it " +
            "at {no_hidden_step}, Adam at {adam}.",
          at: 800,
          holds: [
            "along > 0.99",
            "gain > 0.5",
            "hvadam < 0.25 no_hidden_step",
            "no_hidden_step < 0.9 adam",
          ],
        },
        {
          words:
            "All race at the rate {rate}; tick “the best rate for each” to see what a search leaves.",
          at: 0,
          holds: ["rate = 0.002"],
        },
      ],
      state: usual("fig3", {
        ...{ x: 0.601, y: 1.096, steps: 1000, on: OURS },
        rates: { ...RATES, ...Object.fromEntries(OURS.map((name) => [name, 0.002])) },
      }),
    },
    {
      title: "How v finds the way",
      says: [
        "Draw the line through the old v and the momentum m̂: the foot of the perpendicular from " +
          "the origin onto it is the new v.",
        {
          words:
            "Between the walls it is soon found: at {at} the cosine of v and the floor is {along}.",
          at: 2,
          holds: ["along > 0.999999"],
        },
        {
          words: "There v stays, and its gain grows: at {at} the cosine is {along}, the gain {gain}.",
          at: 60,
          holds: ["along > 0.999999", "gain > 0.0015"],
        },
      ],
      state: usual("fig3", { x: 0.8429, y: 0.8542, steps: 60, on: ["hvadam"], speed: "slow" }),
    },
    {
      title: "Noise",
      says: [
        "The turned valley, with noise of {noise} in each coordinate of every gradient.",
        {
          words:
            "It shortens v step by step: at {at} the length is {length}, the gain {gain}, and what " +
            "moves HVAdam is its adaptive step.",
          at: 300,
          holds: ["length < 1e-6", "gain < 0.002"],
        },
        {
          words:
            "Over {at} AdaBelief is at {adabelief}, HVAdam at {hvadam}, without its hidden step at " +
            "{no_hidden_step}, Adam at {adam}. Draw other noise to see how much of that is chance.",
          at: "end",
          holds: ["adabelief < 0.8 hvadam", "hvadam < 0.9 adam", "no_hidden_step < 0.9 adam"],
        },
      ],
      state: usual("fig3", {
        ...{ x: 0.601, y: 1.096, noise: 6 },
        on: ["adam", "adabelief", "hvadam", "no_hidden_step"],
      }),
    },
    {
      title: "Shrinking gradients",
      says: [
        {
          words:
            "In a round bowl gradients shrink on the way, so the line through v and m̂ passes close " +
            "by the origin, and v collapses: at {at} its cosine with m̂ is {cosine}.",
          at: 2,
          holds: ["cosine < 0.1"],
        },
        {
          words:
            "So v restarts, {restarts} times in {steps} steps, and never earns a gain: HVAdam is at " +
            "{hvadam} with its hidden step and at {no_hidden_step} without, Adam at {adam}, and SGD, " +
            "which only has momentum, at {sgd}.",
          at: 300,
          holds: [
            "restarts = 0.5 steps",
            "hvadam = 1 no_hidden_step",
            "hvadam < 0.5 adam",
            "sgd < 0.001 hvadam",
          ],
        },
      ],
      state: usual("quadratic", { k: 1, on: ["sgd", ...OURS] }),
    },
    {
      title: "A rate searched for each",
      says: [
        "The paper's narrow valley {f} for {steps} steps, and for each optimizer the rate that a " +
          "search finds.",
        {
          words:
            "Over {at} AdaBelief is at {adabelief}, Adam at {adam}, SGD at {sgd}. HVAdam is behind " +
            "them at {hvadam}, and at {no_hidden_step} without its hidden step.",
          at: "end",
          holds: [
            "adabelief < 0.5 hvadam",
            "adam < 0.5 hvadam",
            "sgd < 0.8 hvadam",
            "no_hidden_step < 0.8 hvadam",
          ],
        },
        "Drag the start to see how far that depends on it.",
      ],
      state: usual("f2", { steps: 1000, on: [...names], best: true }),
    },
  ];

  /** Return what a scene says, with the numbers of its races. */
  function tell({ says, state }, races) {
    const fill = ({ words, at }) =>
      words.replace(/\{(\w+)\}/g, (_, name) => {
        if (name === "at") return at === "end" ? "the last tenth of the steps" : `step ${at}`;
        const found = read(name, at, state, races);
        return typeof found === "number" ? Construction.figure(found) : found;
      });
    return says.map((one) => fill(typeof one === "string" ? { words: one } : one)).join(" ");
  }

  /** Return what a claim's word stands for: a setting, an optimizer's loss, or something of v. */
  function read(name, at, state, races) {
    if (Object.hasOwn(state, name)) return state[name];
    const race = races.find((one) => one.name === name);
    if (race) return at === "end" ? Racing.end(race.loss) : race.loss[at];
    if (name === "rate") return races.every(({ lr }) => lr === races[0].lr) ? races[0].lr : NaN;
    const { v1, v2, ...columns } = races.find((one) => one.hidden).hidden;
    if (columns[name]) return columns[name][at];
    const length = Math.hypot(v1[at], v2[at]);
    if (name === "length") return length;
    const turn = (state.angle * Math.PI) / 180;
    return (v1[at] * Math.sin(turn) + v2[at] * Math.cos(turn)) / length; // along the floor
  }

  const short = (number) => String(Number.parseFloat(number.toPrecision(6)));

  /** Return a state as an address, by its scene if it is one's. */
  function encode(state) {
    const scene = find(state);
    const head = state.t > 0 ? `&t=${short(state.t)}` : "";
    return (scene ? `scene=${scenes.indexOf(scene) + 1}` : spell(state)) + head;
  }

  /** Return the scene that a state is, if it is one's. */
  const find = (state) => scenes.find((one) => spell(one.state) === spell(state));

  function spell(state) {
    const lr = state.best ? "best" : state.on.map((name) => short(state.rates[name])).join(",");
    const values = { ...state, on: state.on.join(","), lr };
    return KEYS.map((key) => {
      const value = values[key];
      return `${key}=${typeof value === "number" ? short(value) : value}`;
    }).join("&");
  }

  /** Return what of a page's address to decode: after #, or after ? what is not somebody else's. */
  function choose(hash, search) {
    const known = ["scene", ...KEYS, "t"];
    const asked = [...new URLSearchParams(search)].filter(([key]) => known.includes(key));
    return hash.slice(1) || String(new URLSearchParams(asked));
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
    if (Object.hasOwn(RANGES, key)) return takeNumber(state, key, value);
    if (key === "on") {
      const chosen = [...new Set(list(value))]; // in the order of the rates
      if (!chosen.every((name) => names.includes(name))) {
        return `on must name some of ${names.join(", ")}, got “${value}”`;
      }
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
    const rates = list(value).map((one) => (one.trim() === "" ? NaN : Number(one)));
    const fit = rates.every((rate) => rate >= RATE[0] && rate <= RATE[1]);
    if (!fit || rates.length !== state.on.length) {
      return `lr must be “best” or a rate from ${RATE[0]} to ${RATE[1]} for each, got “${value}”`;
    }
    state.on.forEach((name, i) => (state.rates[name] = rates[i]));
    return "";
  }

  const list = (value) => (value === "" ? [] : value.split(",")); // of nobody too
  const copy = (state) => structuredClone(state);

  return { scenes, tell, read, find, usual, encode, choose, decode, copy };
})();
