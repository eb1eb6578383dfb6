// The paper's toy functions and a quadratic, at any angle, with exact gradients.
//
// Each is written in its own coordinates z, in which the valley's floor lies along the second axis,
// and turned by an angle, f(x) = base(Rᵀx); with the same arithmetic, operation by operation, as
// the bench's studies/toy_functions/functions.py, to which a test holds it.
"use strict";

const Functions = (() => {
  // A base takes z and the condition number, writes the gradient into `out` and returns the loss.

  function kinked(z1, z2, condition, out) {
    const wall = 4 * Math.SQRT2;
    const floor = wall / condition;
    out[0] = wall * Math.sign(z1);
    out[1] = floor * Math.sign(z2);
    return wall * Math.abs(z1) + floor * Math.abs(z2);
  }

  function quadratic(z1, z2, condition, out) {
    out[0] = z1;
    out[1] = z2 / condition;
    return (z1 * z1 + (z2 * z2) / condition) / 2;
  }

  function logBeale(x, y, _condition, out) {
    const y2 = y * y;
    const y3 = y2 * y;
    const a = 1.5 - x + x * y;
    const b = 2.25 - x + x * y2;
    const c = 2.625 - x + x * y3;
    const inside = 1 + (a * a + b * b + c * c);
    out[0] = (2 * (a * (y - 1) + b * (y2 - 1) + c * (y3 - 1))) / (10 * inside);
    out[1] = (2 * x * (a + 2 * b * y + 3 * c * y2)) / (10 * inside);
    return Math.log(inside) / 10;
  }

  function rosenbrock(z1, z2, _condition, out) {
    const bend = z2 - z1 * z1;
    const rest = 1 - z1;
    out[0] = 0 - (400 * z1 * bend + 2 * rest);
    out[1] = 200 * bend;
    return 100 * bend * bend + rest * rest;
  }

  // condition: 0 for functions that have none to set. centre and half: what the picture shows, in z.
  const table = {
    f1: {
      label: "f1, a valley on the axis",
      base: kinked,
      angle: 0,
      condition: 40,
      start: [0.5, 1],
      centre: [0, 0],
      half: 2,
      minimiser: [0, 0],
    },
    f2: {
      label: "f2, the same valley, turned",
      base: kinked,
      angle: 45,
      condition: 40,
      start: [0.5, 1],
      centre: [0, 0],
      half: 2,
      minimiser: [0, 0],
    },
    f3: {
      label: "f3, ln(1 + Beale)/10",
      base: logBeale,
      angle: 0,
      condition: 0,
      start: [-2.5, -2.5],
      centre: [0, 0],
      half: 4,
      minimiser: [3, 0.5],
    },
    f4: {
      label: "f4, Rosenbrock's bent valley",
      base: rosenbrock,
      angle: 0,
      condition: 0,
      start: [-1.5, 2],
      centre: [0, 1],
      half: 2,
      minimiser: [1, 1],
    },
    fig3: {
      label: "Fig. 3, a wider valley",
      base: kinked,
      angle: 45,
      condition: 4,
      start: [0.5, 1],
      centre: [0, 0],
      half: 2,
      minimiser: [0, 0],
    },
    quadratic: {
      label: "a quadratic",
      base: quadratic,
      angle: 30,
      condition: 100,
      start: [1.2, 1.4],
      centre: [0, 0],
      half: 2,
      minimiser: [0, 0],
    },
  };

  /** Return a function at an angle (in degrees): evaluate, and where its centre and minimum lie. */
  function make(name, angle, condition) {
    const { base, centre, minimiser, half } = table[name];
    // The cosine as the sine of the complement, so that both are one number at 45 degrees.
    const cos = Math.sin((90 - angle) * (Math.PI / 180));
    const sin = Math.sin(angle * (Math.PI / 180));
    const inner = [0, 0];

    /** Write the gradient at (x, y) into `out` and return the loss. */
    function evaluate(x, y, out) {
      if (angle === 0) return base(x, y, condition, out);
      const loss = base(cos * x + -sin * y, cos * y - -sin * x, condition, inner);
      out[0] = cos * inner[0] + sin * inner[1];
      out[1] = cos * inner[1] - sin * inner[0];
      return loss;
    }

    const turn = ([z1, z2]) => [cos * z1 + sin * z2, cos * z2 - sin * z1];
    return { evaluate, centre: turn(centre), minimiser: turn(minimiser), half };
  }

  /** Return a source of normal numbers that gives the same ones for the same seed. */
  function normals(seed) {
    let state = seed >>> 0;
    const uniform = () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  return { table, make, normals };
})();
