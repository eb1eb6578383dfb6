// The landscape: a function's shades and contours, the paths over it, and arrows at HVAdam's head.
"use strict";

const Landscape = (() => {
  const CELLS = 144; // of the grid in each direction: coarse, for the lines between are straight
  const LEVELS = 13;
  const SPAN = 4; // decades of loss that are told apart

  /** Return a view: how points of the plane and of a square canvas belong together. */
  function makeView(problem, size) {
    const { centre, half } = problem;
    const scale = size / (2 * half);
    return {
      size,
      toPixels: (x, y) => [(x - centre[0] + half) * scale, (centre[1] + half - y) * scale],
      toPlane: (px, py) => [px / scale + centre[0] - half, centre[1] + half - py / scale],
    };
  }

  /** Draw shades and contours; some milliseconds, so it is done when the function changes. */
  function drawGround(context, problem, view, theme) {
    const { values, low, high } = sample(problem, view);
    shade(context, values, low, high, view, theme);
    context.strokeStyle = theme.contour;
    context.lineWidth = 0.8;
    context.beginPath();
    for (let i = 0; i < LEVELS; i++) {
      traceLevel(context, values, low + ((i + 0.5) / LEVELS) * (high - low), view.size / CELLS);
    }
    context.stroke();
    const [px, py] = view.toPixels(...problem.minimiser);
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const turn of [1, -1]) {
      context.moveTo(px - 5, py - 5 * turn);
      context.lineTo(px + 5, py + 5 * turn);
    }
    context.stroke();
  }

  /** Return log10 of the loss on the grid, and the range of it that is drawn. */
  function sample(problem, view) {
    const side = CELLS + 1;
    const values = new Float64Array(side * side);
    const out = [0, 0];
    let high = -Infinity;
    for (let row = 0; row < side; row++) {
      for (let column = 0; column < side; column++) {
        const at = view.toPlane((column / CELLS) * view.size, (row / CELLS) * view.size);
        const value = Math.log10(problem.evaluate(at[0], at[1], out) + 1e-30);
        values[row * side + column] = value;
        high = Math.max(high, value);
      }
    }
    const low = Math.max(
      values.reduce((a, b) => Math.min(a, b)),
      high - SPAN,
    );
    return { values, low, high };
  }

  function shade(context, values, low, high, view, theme) {
    const side = CELLS + 1;
    const image = new ImageData(side, side);
    for (let i = 0; i < values.length; i++) {
      const share = Math.max(0, Math.min(1, (values[i] - low) / (high - low)));
      for (let c = 0; c < 3; c++) {
        image.data[4 * i + c] = theme.floor[c] + share * (theme.wall[c] - theme.floor[c]);
      }
      image.data[4 * i + 3] = 255;
    }
    const small = new OffscreenCanvas(side, side);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = true;
    const edge = view.size / CELLS / 2; // a sample is the middle of its pixel
    context.drawImage(small, -edge, -edge, view.size + 2 * edge, view.size + 2 * edge);
  }

  /** Add a level's line to the path, cell by cell: straight from one crossed side to another. */
  function traceLevel(context, values, level, width) {
    const side = CELLS + 1;
    for (let row = 0; row < CELLS; row++) {
      for (let column = 0; column < CELLS; column++) {
        const at = row * side + column;
        const [a, b, c, d] = [values[at], values[at + 1], values[at + side + 1], values[at + side]];
        const above = (a > level) + (b > level) + (c > level) + (d > level);
        if (above === 0 || above === 4) continue;
        const crossed = [];
        if (a > level !== b > level) crossed.push(column + (level - a) / (b - a), row);
        if (b > level !== c > level) crossed.push(column + 1, row + (level - b) / (c - b));
        if (d > level !== c > level) crossed.push(column + (level - d) / (c - d), row + 1);
        if (a > level !== d > level) crossed.push(column, row + (level - a) / (d - a));
        for (let i = 0; i + 3 < crossed.length; i += 4) {
          context.moveTo(crossed[i] * width, crossed[i + 1] * width);
          context.lineTo(crossed[i + 2] * width, crossed[i + 3] * width);
        }
      }
    }
  }

  /** Draw the paths up to the head, with a label at each one's end; the widest lies below. */
  function drawPaths(context, races, head, view, theme) {
    const look = (race) => Optimizers.table[race.name].look;
    const order = [...races].sort((one, other) => look(other).width - look(one).width);
    context.lineJoin = "round";
    for (const halo of [true, false]) {
      for (const race of order) {
        tracePath(context, race, head, view);
        context.setLineDash(halo ? [] : look(race).dash);
        context.strokeStyle = halo ? theme.halo : theme.colour(race.name);
        context.lineWidth = look(race).width + (halo ? 2 : 0);
        context.stroke();
      }
    }
    context.setLineDash([]);
    const ends = order.map((race) => ({ race, end: findEnd(race, head, view) }));
    for (const { race, end } of ends) drawEnd(context, race, end, theme);
    for (const { race, x, y, align } of spread(ends, view)) {
      context.textAlign = align;
      const { label, tag = label } = Optimizers.table[race.name];
      write(context, tag, x, y, theme.colour(race.name), theme);
    }
    context.textAlign = "left";
  }

  /** Return the last step of a race that is drawn. */
  const lastStep = (race, head) => Math.floor(Math.min(head, race.diverged - 1, race.x.length - 1));

  function findEnd(race, head, view) {
    const n = lastStep(race, head);
    return view.toPixels(race.x[n], race.y[n]);
  }

  /** Make a race up to the head the context's path. */
  function tracePath(context, race, head, view) {
    context.beginPath();
    context.moveTo(...view.toPixels(race.x[0], race.y[0]));
    for (let n = 1; n <= lastStep(race, head); n++) {
      context.lineTo(...view.toPixels(race.x[n], race.y[n]));
    }
  }

  function drawEnd(context, race, [x, y], theme) {
    context.fillStyle = theme.colour(race.name);
    context.strokeStyle = theme.halo;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, race.name === "hvadam" ? 5.5 : 4.5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }

  /** Return places for the labels, beside their ends but not over each other. */
  function spread(ends, view) {
    const places = ends.map(({ race, end }) => ({
      race,
      x: Math.max(8, Math.min(view.size - 8, end[0])),
      y: Math.max(14, Math.min(view.size - 10, end[1])),
    }));
    places.sort((one, other) => one.y - other.y);
    for (let i = 1; i < places.length; i++) {
      places[i].y = Math.max(places[i].y, places[i - 1].y + 16);
    }
    const over = places.length ? places.at(-1).y - (view.size - 8) : 0;
    return places.map(({ race, x, y }) => {
      const right = x < view.size - 110;
      const at = { race, y: over > 0 ? y - over : y, align: right ? "left" : "right" };
      return { ...at, x: right ? x + 10 : x - 10 };
    });
  }

  /** Draw where m̂ and v would lead, at HVAdam's head: their directions, the longer one 64 px. */
  function drawArrows(context, race, head, view, theme) {
    const n = lastStep(race, head);
    const { m1, m2, v1, v2 } = race.hidden;
    const longest = Math.max(Math.hypot(m1[n], m2[n]), Math.hypot(v1[n], v2[n]));
    if (n === 0 || !(longest > 0)) return;
    const from = view.toPixels(race.x[n], race.y[n]);
    const scale = 64 / longest;
    const to = (a, b) => [from[0] - scale * a, from[1] + scale * b];
    arrow(context, from, to(m1[n], m2[n]), theme.ink, "m̂", theme);
    arrow(context, from, to(v1[n], v2[n]), theme.hidden, "v", theme);
  }

  /** Draw an arrow with a label at its point. */
  function arrow(context, from, to, colour, label, theme) {
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const length = Math.hypot(dx, dy);
    const point = Math.min(9, length / 2);
    const [ux, uy] = length > 0 ? [dx / length, dy / length] : [0, 0];
    for (const [ink, more] of [
      [theme.halo, 2.5],
      [colour, 0],
    ]) {
      context.strokeStyle = ink;
      context.lineWidth = 2.4 + more;
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.moveTo(to[0] - point * (ux + 0.5 * uy), to[1] - point * (uy - 0.5 * ux));
      context.lineTo(...to);
      context.lineTo(to[0] - point * (ux - 0.5 * uy), to[1] - point * (uy + 0.5 * ux));
      context.stroke();
    }
    if (label && length > 12)
      write(context, label, to[0] + 10 * ux + 3, to[1] + 12 * uy + 4, colour, theme);
  }

  /** Write a label with a halo, so that it reads on any ground. */
  function write(context, text, x, y, colour, theme) {
    context.font = theme.font;
    context.lineJoin = "round";
    context.strokeStyle = theme.halo;
    context.lineWidth = 4;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  return { makeView, drawGround, drawPaths, drawArrows, arrow, write };
})();
