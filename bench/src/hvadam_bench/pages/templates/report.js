// Draws the charts, leafs through samples, and lists the runs behind a cell. The
// numbers are all in the JSON elements; Plotly is unpacked when the first chart comes into view.
"use strict";

const content = JSON.parse(document.getElementById("content").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
// On a touch screen dragging scrolls the page.
const coarse = matchMedia("(pointer: coarse), (max-width: 760px)");
const charts = new Map(); // figure element -> {chart, x, drawn}

// ---- Plotly

let loading;
function plotly() {
  loading ??= (async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    return window.Plotly;
  })();
  return loading;
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colour(contender) {
  const look = content.looks[contender];
  return dark.matches ? look.dark : look.light;
}

function translucent(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}

function escaped(text) {
  return text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
}

// ---- Charts: what Plotly is handed

function line(contender, more) {
  const look = content.looks[contender];
  return {
    type: "scatter",
    mode: "lines",
    name: escaped(look.label),
    legendgroup: contender,
    // The steps of the ablation would crowd a chart.
    visible: /^hvadam\d$/.test(contender) ? "legendonly" : true,
    line: { color: colour(contender), width: look.width, dash: look.dash },
    ...more,
  };
}

function curves(chart, by) {
  // Bands of many contenders would cover each other.
  const bands = (chart.traces.length <= 4 ? chart.traces : []).map((trace) => {
    const kept = trace.y.map((_, i) => i).filter((i) => trace.low[i] !== null && trace.high[i] !== null);
    const there = kept.map((i) => trace[by][i]);
    return line(trace.contender, {
      fill: "toself", hoverinfo: "skip", line: { width: 0 }, showlegend: false,
      fillcolor: translucent(colour(trace.contender), 0.16),
      x: [...there, ...there.toReversed()],
      y: [...kept.map((i) => trace.high[i]), ...kept.toReversed().map((i) => trace.low[i])],
    });
  });
  const lines = chart.traces.map((trace) => line(trace.contender, {
    x: trace[by], y: trace.y,
    customdata: trace.y.map((_, i) => [trace.low[i] ?? "diverged", trace.high[i] ?? "diverged", trace.n, trace.steps[i], trace.seconds?.[i]]),
    hovertemplate: "<b>%{fullData.name}</b>: %{y:.5~g}<br>quartiles %{customdata[0]:.5~g} to %{customdata[1]:.5~g}"
      + `<br>step %{customdata[3]:,}${trace.seconds ? ", %{customdata[4]:.3~g} s" : ""}, n = %{customdata[2]}<extra></extra>`,
  }));
  const y = axis(chart.y, chart.log ? "log" : "linear");
  // A copy: Plotly writes where a reader zooms to into what it is given.
  if (chart.window) y.range = chart.window.map(chart.log ? Math.log10 : Number);
  return { data: [...bands, ...lines], x: axis(by === "steps" ? "steps" : "seconds in training"), y };
}

function rates(chart) {
  const values = chart.traces.flatMap((trace) => trace.y).filter((y) => y !== null);
  const scale = chart.log ? Math.log10 : (y) => y;
  const [low, high] = [Math.min(...values), Math.max(...values)].map(scale);
  const margin = 0.08 * (high - low || 1);
  const range = [low - margin, high + margin];
  const edge = chart.goal === "max" ? range[0] : range[1]; // where what diverged is marked
  const ground = chart.log ? 10 ** edge : edge;
  const lines = chart.traces.map((trace) => line(trace.contender, {
    mode: "lines+markers", x: trace.x, y: trace.y,
    marker: { opacity: 1, size: trace.x.map((lr) => (lr === trace.chosen ? 11 : 5)), line: { width: 1, color: variable("--ground") } },
    hovertemplate: "<b>%{fullData.name}</b>: %{y:.5~g}<br>lr %{x:~g}<extra></extra>",
  }));
  const lost = chart.traces.map((trace) => {
    const at = trace.x.filter((_, i) => trace.y[i] === null);
    return line(trace.contender, {
      mode: "markers", showlegend: false, x: at, y: at.map(() => ground), cliponaxis: false,
      marker: { symbol: "x-thin", size: 8, line: { width: 2, color: colour(trace.contender) } },
      hovertemplate: "<b>%{fullData.name}</b><br>lr %{x:~g}: diverged or pruned<extra></extra>",
    });
  });
  // Powers are written larger than other ticks.
  const x = { ...axis("learning rate", "log"), dtick: 1, exponentformat: "power", tickformat: "", tickfont: { size: 10 } };
  return { data: [...lines, ...lost], x, y: { ...axis(chart.y, chart.log ? "log" : "linear"), range } };
}

function axis(title, type = "linear") {
  return {
    type, title: { text: escaped(title), standoff: 8, font: { size: 12 } }, automargin: true,
    gridcolor: variable("--line"), linecolor: variable("--line"), zeroline: false, ticks: "outside", tickcolor: variable("--line"),
    // Few ticks with whole numbers: many would be single digits, and two of them the same.
    ...(type === "log" ? { minor: { showgrid: false }, nticks: 4, tickformat: "~g" } : {}),
  };
}

async function draw(figure) {
  const state = charts.get(figure);
  const { data, x, y } = { curves, rates }[state.chart.kind](state.chart, state.x);
  // Heaviest last, so that it lies on top.
  data.sort((a, b) => (a.line.width ?? 0) - (b.line.width ?? 0));
  const layout = {
    margin: { l: 8, r: 12, t: 8, b: 8 }, hovermode: "closest",
    // Whatever is drawn anew, a reader's choice of contenders and place stays.
    uirevision: state.x, legend: { orientation: "h", y: -0.2, traceorder: "grouped", tracegroupgap: 0, itemwidth: 30 }, showlegend: true,
    dragmode: coarse.matches ? false : "zoom", xaxis: x, yaxis: y,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: variable("--text") },
    hoverlabel: { bgcolor: variable("--raised"), bordercolor: variable("--line"), font: { color: variable("--text") }, align: "left" },
  };
  const place = figure.querySelector(".plot");
  try {
    const Plotly = await plotly();
    await Plotly.react(place, data, layout, { displayModeBar: false, responsive: true, doubleClick: "reset+autosize" });
  } catch (error) {
    place.classList.add("broken");
    place.textContent = `The chart cannot be drawn here: ${error.message}`;
  }
}

function press(button, pressed) {
  button.setAttribute("aria-pressed", String(pressed));
}

// A chart over steps is one over seconds too, if all runs were timed.
function tools(figure) {
  const state = charts.get(figure);
  if (state.chart.kind !== "curves" || !state.chart.traces.every((trace) => trace.seconds)) return;
  const buttons = ["steps", "seconds"].map((by) => {
    const button = element("button", by === "steps" ? "by steps" : "by time");
    button.type = "button";
    press(button, by === state.x);
    button.addEventListener("click", () => {
      state.x = by;
      for (const one of buttons) press(one, one === button);
      draw(figure);
    });
    return button;
  });
  figure.querySelector(".tools").append(...buttons);
}

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    charts.get(target).drawn = true;
    draw(target);
  }
}, { rootMargin: "300px" });

for (const figure of document.querySelectorAll("figure.chart")) {
  charts.set(figure, { chart: content.charts[figure.dataset.chart], x: "steps", drawn: false });
  tools(figure);
  seen.observe(figure);
}

dark.addEventListener("change", () => {
  for (const [figure, state] of charts) if (state.drawn) draw(figure);
});

// ---- Samples

const PNG = "data:image/png;base64,";

function unpack(part) {
  const packed = JSON.parse(document.getElementById(part.dataset.packed).textContent);
  // What the page shows from the start is not packed a second time.
  for (const { dataset, src } of part.querySelectorAll("img")) packed.pictures[dataset.place] = src.slice(PNG.length);
  return packed;
}

function go(part, at) {
  part.packed ??= unpack(part);
  const { steps, pictures, figures } = part.packed;
  for (const figure of part.querySelectorAll("figure")) {
    const { shown, values } = figures[figure.dataset.of];
    figure.querySelector("img").src = PNG + pictures[shown[at]];
    figure.querySelector(".value").textContent = values[at];
  }
  const text = `step ${steps[at].toLocaleString("en")}`;
  part.querySelector("output").textContent = text;
  part.querySelector("input").setAttribute("aria-valuetext", text);
}

for (const part of document.querySelectorAll(".samples")) {
  const slider = part.querySelector("input");
  if (!slider) continue;
  slider.addEventListener("input", () => go(part, Number(slider.value)));
  part.querySelector(".steps").hidden = false;
}

// ---- The runs behind a cell

const dialog = document.getElementById("runs");

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function entry(run) {
  const box = element("div", undefined, "run");
  const facts = element("div", undefined, "facts");
  const options = Object.entries(run.options).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ") || "defaults";
  facts.append(element("b", content.looks[run.contender].label), element("span", `seed ${run.seed} (${run.purpose})`), element("span", options));
  facts.append(element("span", run.status, run.status === "done" ? "" : "lost"));
  if (run.test !== null) facts.append(element("span", `test ${run.metric} ${run.test}`));
  if (run.seconds !== null) facts.append(element("span", `${run.seconds} s`));
  box.append(facts);
  if (run.reason) box.append(element("div", run.reason, "lost"));
  const again = element("div", undefined, "again");
  const copy = element("button", "copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(run.command);
    copy.textContent = "copied";
  });
  again.append(element("code", run.command), ...(navigator.clipboard ? [copy] : []));
  box.append(again, element("div", run.path, "path"));
  return box;
}

function list(title, places) {
  document.getElementById("runs-title").textContent = `${title} (${places.length} run${places.length === 1 ? "" : "s"})`;
  dialog.querySelector(".list").replaceChildren(...places.map((place) => entry(content.runs[place])));
  dialog.showModal();
  dialog.scrollTop = 0;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-runs]");
  if (button) list(button.dataset.title, button.dataset.runs.split(",").map(Number));
  // A click beside the dialog lands on the dialog itself.
  if (event.target === dialog || event.target.closest(".close")) dialog.close();
});
