// Races: one optimizer from one start, all of its steps, and the rate at which it ends lowest.
"use strict";

const Racing = (() => {
  const FAR = 1e6; // a path that gets here has diverged
  const RATES = Array.from({ length: 19 }, (_, i) => 10 ** (-4 + i / 4));

  /** Return the gradient noise of each step, the same for whoever races: x and y in turn. */
  function drawNoise(sigma, seed, steps) {
    const noise = new Float64Array(2 * steps);
    if (sigma === 0) return noise;
    const normal = Functions.normals(seed);
    for (let i = 0; i < noise.length; i++) noise[i] = sigma * normal();
    return noise;
  }

  /** Call `after(n, theta, state)` for n = 0 (the start) and after every step, unless it diverges. */
  function run(problem, optimizer, lr, start, noise, after) {
    const state = optimizer.create();
    const theta = [start[0], start[1]];
    const g = [0, 0];
    after(0, theta, state, problem.evaluate(theta[0], theta[1], g));
    for (let n = 1; 2 * n <= noise.length; n++) {
      g[0] += noise[2 * n - 2];
      g[1] += noise[2 * n - 1];
      optimizer.step(state, theta, g, lr);
      if (!(Math.abs(theta[0]) < FAR && Math.abs(theta[1]) < FAR)) return n;
      after(n, theta, state, problem.evaluate(theta[0], theta[1], g));
    }
    return Infinity;
  }

  /** Return a race as columns over steps; those of the hidden vector for HVAdam alone. */
  function race(problem, name, lr, start, noise) {
    const size = noise.length / 2 + 1;
    const column = () => new Float64Array(size).fill(NaN);
    const found = { name, lr, x: column(), y: column(), loss: column(), hidden: null };
    if (name === "hvadam") {
      const names = ["m1", "m2", "v1", "v2", "cosine", "delta", "age", "gain", "restarts"];
      found.hidden = { events: new Array(size).fill("") };
      for (const one of names) found.hidden[one] = column();
    }
    found.diverged = run(
      problem,
      Optimizers.table[name],
      lr,
      start,
      noise,
      (n, theta, state, loss) => {
        found.x[n] = theta[0];
        found.y[n] = theta[1];
        found.loss[n] = loss;
        if (found.hidden) keep(found.hidden, n, state);
      },
    );
    return found;
  }

  /** Return the races of a state: its problem, and a race for each that is on, at its rate. */
  function runAll(state) {
    const start = [state.x, state.y];
    const noise = drawNoise(state.noise, state.seed, state.steps);
    const problem = Functions.make(state.f, state.angle, state.k);
    const races = state.on.map((name) => {
      const lr = state.best ? bestRate(problem, name, start, noise) : state.rates[name];
      return race(problem, name, lr, start, noise);
    });
    return { problem, races };
  }

  function keep(hidden, n, state) {
    [hidden.m1[n], hidden.m2[n]] = state.mHat;
    [hidden.v1[n], hidden.v2[n]] = state.v;
    for (const one of ["cosine", "delta", "age", "gain", "restarts"]) hidden[one][n] = state[one];
    hidden.events[n] = state.event;
  }

  /** Return where a race ends: the mean of its losses over the last tenth of the steps. */
  function end(loss) {
    const tail = loss.slice(Math.ceil(0.9 * (loss.length - 1)));
    return tail.reduce((sum, one) => sum + one) / tail.length;
  }

  /** Return where a race at a rate ends, Infinity if it diverges. */
  function score(problem, name, lr, start, noise) {
    const losses = new Float64Array(noise.length / 2 + 1).fill(Infinity);
    run(problem, Optimizers.table[name], lr, start, noise, (n, _theta, _state, loss) => {
      losses[n] = loss;
    });
    return end(losses);
  }

  /** Return the rate, of a quarter of a decade each, at which an optimizer ends lowest. */
  function bestRate(problem, name, start, noise) {
    const scores = RATES.map((lr) => score(problem, name, lr, start, noise));
    return RATES[scores.indexOf(Math.min(...scores))];
  }

  return { drawNoise, race, runAll, end, bestRate };
})();
