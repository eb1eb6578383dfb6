// Six optimizers in two dimensions, operation by operation as the bench's oracles have them.
//
// HVAdam follows core/reference.py with its default options, once more without its hidden step
// (hidden_scale=0), the others contenders/*.py; a test holds each to these, one step at a time and
// over whole races. Looks are those of every figure.
"use strict";

const Optimizers = (() => {
  const BETA1 = 0.9;
  const BETA2 = 0.999;
  const MOST_STEPS = 3000;
  // 1 - βᵗ by steps t. Browsers round powers as they like, and the difference magnifies what they do.
  const BIAS1 = complements(BETA1);
  const BIAS2 = complements(BETA2);

  /** Return 1 - βᵗ for t = 0, 1, ...: the powers as sums of two numbers, so that none is misrounded. */
  function complements(beta) {
    const split = (x) => {
      const high = 134217729 * x - (134217729 * x - x);
      return [high, x - high];
    };
    const [b1, b2] = split(beta);
    const found = new Float64Array(MOST_STEPS + 1);
    let [power, rest] = [1, 0];
    for (let t = 1; t <= MOST_STEPS; t++) {
      const product = power * beta;
      const [p1, p2] = split(power);
      const lost = p2 * b2 - (product - p1 * b1 - p2 * b1 - p1 * b2);
      const low = lost + rest * beta;
      [power, rest] = [product + low, low - (product + low - product)];
      found[t] = 1 - power;
    }
    return found;
  }

  const zeros = () => [0, 0];

  const sgd = {
    label: "SGD",
    lr: 0.1,
    range: [-4, 0.5],
    look: { light: "#00805D", dark: "#2FC79B", dash: [12, 4], width: 1.8 },
    create: () => ({ velocity: zeros() }),
    step(state, theta, g, lr) {
      for (let i = 0; i < 2; i++) {
        state.velocity[i] = 0.9 * state.velocity[i] + g[i];
        theta[i] = theta[i] - lr * state.velocity[i];
      }
    },
  };

  const adam = {
    label: "Adam",
    lr: 0.01,
    range: [-4, 0.5],
    look: { light: "#0072B2", dark: "#4AA8E0", dash: [7, 4], width: 1.8 },
    create: () => ({ t: 0, first: zeros(), second: zeros() }),
    step(state, theta, g, lr) {
      state.t += 1;
      const bias1 = BIAS1[state.t];
      const bias2 = BIAS2[state.t];
      for (let i = 0; i < 2; i++) {
        state.first[i] = BETA1 * state.first[i] + (1 - BETA1) * g[i];
        state.second[i] = BETA2 * state.second[i] + (1 - BETA2) * (g[i] * g[i]);
        const root = Math.sqrt(state.second[i] / bias2) + 1e-8;
        theta[i] = theta[i] - (lr * (state.first[i] / bias1)) / root;
      }
    },
  };

  const nadam = {
    label: "NAdam",
    lr: 0.01,
    range: [-4, 0.5],
    look: { light: "#0072B2", dark: "#4AA8E0", dash: [2, 3], width: 1.8 },
    create: () => ({ t: 0, first: zeros(), second: zeros(), product: 1 }),
    step(state, theta, g, lr) {
      const momentum = (t) => BETA1 * (1 - 0.5 * 0.96 ** (t * 0.004));
      state.t += 1;
      const now = momentum(state.t);
      const then = momentum(state.t + 1);
      state.product *= now;
      const bias2 = BIAS2[state.t];
      for (let i = 0; i < 2; i++) {
        state.first[i] = BETA1 * state.first[i] + (1 - BETA1) * g[i];
        state.second[i] = BETA2 * state.second[i] + (1 - BETA2) * (g[i] * g[i]);
        const ahead =
          (then * state.first[i]) / (1 - state.product * then) +
          ((1 - now) * g[i]) / (1 - state.product);
        theta[i] = theta[i] - (lr * ahead) / (Math.sqrt(state.second[i] / bias2) + 1e-8);
      }
    },
  };

  const adabelief = {
    label: "AdaBelief",
    lr: 0.01,
    range: [-4, 0.5],
    look: { light: "#B0568A", dark: "#E39BC5", dash: [7, 3, 2, 3], width: 1.8 },
    create: () => ({ t: 0, first: zeros(), spread: zeros() }),
    step(state, theta, g, lr) {
      state.t += 1;
      const bias1 = BIAS1[state.t];
      const bias2 = BIAS2[state.t];
      for (let i = 0; i < 2; i++) {
        state.first[i] = BETA1 * state.first[i] + (1 - BETA1) * g[i];
        const off = g[i] - state.first[i];
        state.spread[i] = BETA2 * state.spread[i] + (1 - BETA2) * (off * off) + 1e-8;
        const root = Math.sqrt(state.spread[i] / bias2) + 1e-8;
        theta[i] = theta[i] - lr * (state.first[i] / bias1 / root);
      }
    },
  };

  const EPS = 1e-12;
  const GAMMA = 0.5;
  const THRESHOLD = 0.1;
  const SAME = 8 * Number.EPSILON; // v and m̂ count as equal when only rounding parts them

  const hvadam = {
    label: "HVAdam",
    lr: 0.01,
    range: [-4, 0.5],
    look: { light: "#D55E00", dark: "#FF8A3D", dash: [], width: 3.4 },
    // v is the hidden vector, age the steps since it (re)started (-1 before); event is what the
    // last step did to it: "start", "update", "restart" or "hold".
    create: () => ({
      ...{ t: 0, m: zeros(), v: zeros(), s: zeros(), mHat: zeros() },
      ...{ age: -1, delta: 0, cosine: 0, mix: 1, gain: 0, restarts: 0, event: "" },
    }),
    step(state, theta, g, lr, hiddenScale = 1) {
      const { m, v, s, mHat } = state;
      state.t += 1;
      for (let i = 0; i < 2; i++) {
        m[i] = BETA1 * m[i] + (1 - BETA1) * g[i];
        const p = (g[i] - v[i]) * (g[i] - v[i]);
        const off = g[i] - m[i];
        const eta = p / (off * off + GAMMA * p + EPS);
        s[i] = BETA2 * s[i] + (1 - BETA2) * eta * p + EPS;
        mHat[i] = m[i] / BIAS1[state.t];
      }
      moveHidden(state);
      for (let i = 0; i < 2; i++) {
        const sHat = s[i] / BIAS2[state.t];
        theta[i] = theta[i] - (lr * mHat[i]) / (Math.sqrt(sHat) + EPS);
        theta[i] = theta[i] - lr * hiddenScale * state.gain * v[i];
      }
    },
  };

  const adaptiveOnly = {
    ...hvadam,
    label: "HVAdam (no hidden step)",
    tag: "no hidden step", // where there is little room
    look: { ...hvadam.look, dash: [7, 3, 2, 3], width: 1.8 },
    step: (state, theta, g, lr) => hvadam.step(state, theta, g, lr, 0),
  };

  /** Move the hidden vector to the foot of the perpendicular from 0 onto the line through v, m̂. */
  function moveHidden(state) {
    const { v, mHat } = state;
    const d = [v[0] - mHat[0], v[1] - mHat[1]];
    const dd = d[0] * d[0] + d[1] * d[1];
    const dv = d[0] * v[0] + d[1] * v[1];
    const mm = mHat[0] * mHat[0] + mHat[1] * mHat[1];
    const vv = v[0] * v[0] + v[1] * v[1];
    state.mix = 1;
    state.gain = 0;
    state.event = "hold";
    if (![dd, dv, mm, vv].every(Number.isFinite) || (state.age < 0 && mm === 0)) return;
    if (state.age < 0) {
      Object.assign(state, { age: 0, delta: 0, cosine: 1, mix: 0, event: "start" });
      v[0] = mHat[0];
      v[1] = mHat[1];
      return;
    }
    state.age += 1;
    const same = Math.sqrt(dd) <= SAME * Math.sqrt(vv);
    const k = same ? 0 : dv / dd;
    v[0] = v[0] - k * d[0];
    v[1] = v[1] - k * d[1];
    if (mm === 0 || vv === 0) state.cosine = 0;
    else if (same) state.cosine = 1;
    else state.cosine = Math.min(1, Math.sqrt((v[0] * v[0] + v[1] * v[1]) / mm));
    state.delta = BETA2 * state.delta + (1 - BETA2) * state.cosine;
    state.mix = 1 - k;
    if (state.delta / BIAS2[state.age] < THRESHOLD) {
      Object.assign(state, { age: -1, restarts: state.restarts + 1, event: "restart" });
    } else {
      state.gain = 10 ** (6 * state.delta - 3);
      state.event = "update";
    }
  }

  const table = { sgd, adam, nadam, adabelief, hvadam, no_hidden_step: adaptiveOnly };
  return { table, BIAS1, BIAS2, THRESHOLD, MOST_STEPS };
})();
