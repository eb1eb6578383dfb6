// How the hidden vector moves in one step: the line through v and m̂, and its point nearest to 0.
"use strict";

const Construction = (() => {
  // What is drawn from which part of a step on, when it is played slowly.
  const MOMENTUM = 0.15;
  const LINE = 0.35;
  const FOOT = 0.6;
  const DONE = 0.85;

  /** Return the step that a head is within, and how much of it is done: 12.5 is half of step 13. */
  function within(head, race) {
    const last = Math.min(race.x.length - 1, race.diverged - 1);
    const n = Math.min(Math.ceil(head), last);
    return { n, done: n - head <= 0 ? 1 : 1 - (n - head) };
  }

  /** Draw the construction of the head's step, as downhill directions. */
  function draw(context, race, head, width, height, theme) {
    context.clearRect(0, 0, width, height);
    const { n, done } = within(head, race);
    if (n === 0) return;
    const { m1, m2, v1, v2, events } = race.hidden;
    const old = [v1[n - 1], v2[n - 1]];
    const momentum = [m1[n], m2[n]];
    const now = [v1[n], v2[n]];
    const place = fit([old, momentum, now], width, height);
    const origin = place([0, 0]);
    const starts = events[n] === "start";

    if (!starts && done > LINE) {
      drawLine(context, place(old), place(momentum), Math.min(1, (done - LINE) / 0.2), theme);
    }
    if (!starts && done > FOOT) {
      drawPerpendicular(context, origin, place(now), place(old), (done - FOOT) / 0.2, theme);
    }
    const moved = Math.hypot(place(old)[0] - place(now)[0], place(old)[1] - place(now)[1]);
    const name = moved > 24 || done <= DONE ? "old v" : "";
    if (!starts) Landscape.arrow(context, origin, place(old), theme.faint, name, theme);
    if (done > MOMENTUM) Landscape.arrow(context, origin, place(momentum), theme.ink, "m̂", theme);
    if (done > DONE || starts) {
      Landscape.arrow(context, origin, place(now), theme.hidden, "v", theme);
    }
    context.fillStyle = theme.ink;
    context.beginPath();
    context.arc(...origin, 3.5, 0, 2 * Math.PI);
    context.fill();
    Landscape.write(context, "0", origin[0] - 14, origin[1] + 5, theme.ink, theme);
  }

  /** Return a map from gradients to pixels that shows 0 and all of them, downhill. */
  function fit(vectors, width, height) {
    const points = [[0, 0], ...vectors].map(([a, b]) => [-a, b]);
    const [xs, ys] = [0, 1].map((i) => points.map((point) => point[i]));
    const [left, right, top, bottom] = [
      ...[Math.min(...xs), Math.max(...xs)],
      ...[Math.min(...ys), Math.max(...ys)],
    ];
    const room = 46;
    const across = (width - 2 * room) / (right - left || 1e-300);
    const scale = Math.min(across, (height - 2 * room) / (bottom - top || 1e-300));
    const [x0, y0] = [
      width / 2 - (scale * (left + right)) / 2,
      height / 2 - (scale * (top + bottom)) / 2,
    ];
    return ([a, b]) => [x0 - scale * a, y0 + scale * b];
  }

  function drawLine(context, from, to, share, theme) {
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const length = Math.hypot(dx, dy);
    if (length < 1e-9) return;
    const reach = (2000 * share) / length;
    context.strokeStyle = theme.rule;
    context.lineWidth = 1.4;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(from[0] - dx * reach, from[1] - dy * reach);
    context.lineTo(from[0] + dx * reach, from[1] + dy * reach);
    context.stroke();
    context.setLineDash([]);
  }

  /** Draw the way from 0 to the foot, and the right angle there once it has arrived. */
  function drawPerpendicular(context, origin, foot, old, share, theme) {
    const [dx, dy] = [foot[0] - origin[0], foot[1] - origin[1]];
    const part = Math.min(1, share);
    context.strokeStyle = theme.hidden;
    context.lineWidth = 1.4;
    context.beginPath();
    context.moveTo(...origin);
    context.lineTo(origin[0] + part * dx, origin[1] + part * dy);
    const length = Math.hypot(dx, dy);
    const along = Math.hypot(old[0] - foot[0], old[1] - foot[1]);
    const side = Math.min(9, length / 2);
    if (part === 1 && length > 4 && along > 4) {
      const [ux, uy] = [(-side * dx) / length, (-side * dy) / length];
      const [wx, wy] = [(side * (old[0] - foot[0])) / along, (side * (old[1] - foot[1])) / along];
      context.moveTo(foot[0] + ux, foot[1] + uy);
      context.lineTo(foot[0] + ux + wx, foot[1] + uy + wy);
      context.lineTo(foot[0] + wx, foot[1] + wy);
    }
    context.stroke();
  }

  /** Return what happened to the hidden vector in the head's step, as a sentence or two. */
  function tell(race, head) {
    const { n } = within(head, race);
    if (n === 0) return "Before the first step there is no hidden vector.";
    const { events, cosine, gain, v1, v2 } = race.hidden;
    const event = {
      start: "v starts as the momentum m̂; no hidden step yet.",
      update: `v moves to the foot; its cosine with m̂ is ${cosine[n].toFixed(2)}.`,
      restart: "v and m̂ no longer agree: the next step starts anew.",
      hold: "nothing to go by, so v stays.",
    }[events[n]];
    const hidden = race.lr * gain[n] * Math.hypot(v1[n], v2[n]);
    const [dx, dy] = [race.x[n] - race.x[n - 1], race.y[n] - race.y[n - 1]];
    const along = race.lr * gain[n];
    const adaptive = Math.hypot(dx + along * v1[n], dy + along * v2[n]);
    return `Step ${n}: ${event} Adaptive step ${figure(adaptive)}, hidden step ${figure(hidden)}.`;
  }

  /** Return a number in three digits, as people write it. */
  function figure(number) {
    if (number === 0) return "0";
    if (!Number.isFinite(number)) return "–";
    const digits = Number.parseFloat(number.toPrecision(3));
    return Math.abs(digits) >= 1e-3 && Math.abs(digits) < 1e5
      ? String(digits)
      : number.toExponential(1);
  }

  return { draw, tell, figure };
})();
