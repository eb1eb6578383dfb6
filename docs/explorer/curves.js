// Charts over the steps: losses on a log axis, and the alignment, gain and restarts of HVAdam.
"use strict";

const Curves = (() => {
  const LEFT = 46;
  const TOP = 10;
  const BOTTOM = 22;

  /**
   * Draw a chart.
   *
   * lines: { values, colour, dash, width, label }, NaN where there is nothing to draw.
   * options: { steps, head, low, high, log, marks, rule }; marks are steps, rule is a height.
   */
  function draw(context, width, height, lines, options, theme) {
    const right = lines.some((line) => line.label) ? Math.min(104, width / 3.5) : 12;
    const box = { left: LEFT, top: TOP, right: width - right, bottom: height - BOTTOM };
    const scale = makeScale(box, options);
    context.clearRect(0, 0, width, height);
    drawAxes(context, box, scale, options, theme);
    context.save();
    context.beginPath();
    context.rect(box.left, 0, box.right - box.left, height);
    context.clip();
    if (options.rule !== undefined) drawRule(context, box, scale.y(options.rule), theme);
    drawMarks(context, box, scale, options, theme);
    for (const line of lines) drawLine(context, line, scale, options);
    drawHead(context, box, scale.x(options.head), theme);
    context.restore();
    drawLabels(context, lines, box, scale, theme);
  }

  function makeScale(box, { steps, low, high, log }) {
    const [from, to] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    const x = (n) => box.left + (n / steps) * (box.right - box.left);
    const y = (value) => {
      const at = log ? Math.log10(Math.max(value, low)) : value;
      return box.bottom - ((Math.min(at, to) - from) / (to - from)) * (box.bottom - box.top);
    };
    return { x, y, from, to };
  }

  function drawAxes(context, box, scale, { steps, log }, theme) {
    context.font = theme.small;
    context.strokeStyle = theme.grid;
    context.fillStyle = theme.muted;
    context.lineWidth = 1;
    context.beginPath();
    for (const [value, text] of log
      ? decades(scale)
      : [
          [0, "0"],
          [0.5, "0.5"],
          [1, "1"],
        ]) {
      const y = Math.round(scale.y(value)) + 0.5;
      context.moveTo(box.left, y);
      context.lineTo(box.right, y);
      context.textAlign = "right";
      context.fillText(text, box.left - 6, y + 4);
    }
    context.stroke();
    context.textAlign = "center";
    for (const n of [0, steps / 2, steps]) {
      context.fillText(String(Math.round(n)), scale.x(n), box.bottom + 16);
    }
    context.textAlign = "left";
  }

  /** Return at most seven powers of ten on an axis, and how they are written. */
  function decades({ from, to }) {
    const every = Math.max(1, Math.ceil((to - from) / 6));
    const found = [];
    for (let power = Math.ceil(from - 1e-9); power <= to + 1e-9; power += every) {
      found.push([
        10 ** power,
        Math.abs(power) <= 3 ? String(+(10 ** power).toFixed(3)) : `1e${power}`,
      ]);
    }
    return found;
  }

  function drawRule(context, box, y, theme) {
    context.strokeStyle = theme.muted;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(box.left, y);
    context.lineTo(box.right, y);
    context.stroke();
    context.setLineDash([]);
  }

  function drawMarks(context, box, scale, { marks = [], head }, theme) {
    context.strokeStyle = theme.hidden;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const n of marks.filter((one) => one <= head)) {
      context.moveTo(scale.x(n), box.bottom);
      context.lineTo(scale.x(n), box.bottom - 9);
    }
    context.stroke();
  }

  /** Draw a line: faint as a whole, and in full up to the head. */
  function drawLine(context, line, scale, { head }) {
    context.strokeStyle = line.colour;
    context.lineWidth = line.width;
    context.setLineDash(line.dash);
    for (const [last, alpha] of [
      [line.values.length - 1, 0.22],
      [Math.floor(head), 1],
    ]) {
      context.globalAlpha = alpha;
      context.beginPath();
      for (let n = 0, pen = false; n <= last; n++) {
        if (!Number.isFinite(line.values[n])) continue;
        const [x, y] = [scale.x(n), scale.y(line.values[n])];
        if (pen) context.lineTo(x, y);
        else context.moveTo(x, y);
        pen = true;
      }
      context.stroke();
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  function drawHead(context, box, x, theme) {
    context.strokeStyle = theme.ink;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, box.top);
    context.lineTo(x, box.bottom);
    context.stroke();
  }

  /** Name the lines at their ends, apart from each other. */
  function drawLabels(context, lines, box, scale, theme) {
    const named = lines.filter((line) => line.label);
    const places = named.map((line) => {
      const last = line.values.findLast(Number.isFinite);
      return { line, y: last === undefined ? box.top : scale.y(last) };
    });
    places.sort((one, other) => one.y - other.y);
    for (let i = 1; i < places.length; i++)
      places[i].y = Math.max(places[i].y, places[i - 1].y + 14);
    const over = places.length ? Math.max(0, places.at(-1).y - box.bottom) : 0;
    context.font = theme.small;
    for (const { line, y } of places) {
      context.fillStyle = line.colour;
      context.fillText(line.label, box.right + 5, y - over + 4);
    }
  }

  /** Return the range of a log axis that shows all of some columns, in whole decades. */
  function range(columns, floor) {
    let [low, high] = [Infinity, -Infinity];
    for (const values of columns) {
      for (const value of values) {
        if (!Number.isFinite(value)) continue;
        low = Math.min(low, Math.max(value, floor));
        high = Math.max(high, Math.max(value, floor));
      }
    }
    if (!(low <= high)) return [floor, 1];
    const up = 10 ** Math.ceil(Math.log10(high) + 1e-9);
    return [Math.min(10 ** Math.floor(Math.log10(low) + 1e-9), up / 10), up];
  }

  return { draw, range };
})();
