"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-of-page").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const MARKS = data.marks, STYLES = MARKS.length;
  const AXES = { step: "steps", epoch: "epochs", tokens: "target tokens", minutes: "minutes of training" };
  const percent = (value) => `${(100 * value).toFixed(1)}%`;
  const FORMATS = {
    loss: (value) => value.toFixed(3),
    accuracy: percent,
    bleu: (value) => value.toFixed(1),
    chrf: (value) => value.toFixed(1),
    learning_rate: (value) => value.toPrecision(3),
    tokens_per_second: (value) => `${Math.round(value).toLocaleString("en")} tokens/s`,
  };
  const POSITIONS = {
    step: (value) => `step ${value.toLocaleString("en")}`,
    epoch: (value) => `epoch ${Number(value.toFixed(2))}`,
    tokens: (value) => `${Math.round(value).toLocaleString("en")} tokens`,
    minutes: (value) => `minute ${value.toFixed(1)}`,
  };

  function element(parent, name, attributes = {}, text = null) {
    const isDrawn = parent.namespaceURI === SVG || name === "svg";
    const made = isDrawn ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  }

  // --- axes

  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const found = [];
    for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-6; number++) found.push(number * step);
    return found;
  }

  function short(value) {
    for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(4))}${letter}`;
    return String(Number(value.toPrecision(4)));
  }

  const FROM_ZERO = ["learning_rate", "tokens_per_second"];

  function range(values, fromZero = false) {
    const low = Math.min(...values), high = Math.max(...values);
    const margin = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
    return [low >= 0 && (fromZero || low < 0.15 * high) ? 0 : low - margin, high + margin];
  }

  // --- charts

  let unit = "step";
  const charts = [];

  class ChartView {
    constructor(figure) {
      this.chart = data.charts[Number(figure.dataset.chart)];
      this.plot = figure.querySelector(".plot");
      this.off = new Set();
      this.at = null;
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "slider");
      this.plot.setAttribute("aria-label", `${this.chart.title}, values along the horizontal axis`);
      this.tip = element(this.plot, "div", { class: "tip", hidden: "" });
      this.plot.addEventListener("pointermove", (event) => this.point(event));
      this.plot.addEventListener("pointerdown", (event) => this.point(event));
      this.plot.addEventListener("pointerleave", () => this.show(null));
      this.plot.addEventListener("blur", () => this.show(null));
      this.plot.addEventListener("keydown", (event) => this.key(event));
      for (const item of figure.querySelectorAll(".legend li")) this.legend(item);
      new ResizeObserver(() => { if (this.plot.clientWidth !== this.width) this.draw(); }).observe(this.plot);
    }

    legend(item) {
      const number = Number(item.dataset.series);
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        if (!this.off.delete(number)) this.off.add(number);
        button.setAttribute("aria-pressed", String(!this.off.has(number)));
        this.draw();
      });
    }

    // Points of each line that is shown: [x, y, index].
    collect() {
      this.lines = this.chart.series.flatMap((series, number) => {
        if (this.off.has(number)) return [];
        const track = data.tracks[series.track];
        const xs = track.x[unit], ys = track.y[this.chart.column];
        const points = xs.map((x, index) => [x, ys[index], index]).filter(([x, y]) => x !== null && y !== null);
        return points.length ? [{ series, track, points }] : [];
      });
      this.stops = [...new Set(this.lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
    }

    draw() {
      this.width = this.plot.clientWidth;
      this.collect();
      this.plot.querySelector(":scope > svg")?.remove();
      const width = Math.max(this.width || 480, 240), height = Math.min(Math.max(width * 0.54, 200), 300);
      const svg = element(this.plot, "svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
      this.tip.hidden = true;
      const box = { left: 50, right: width - 12, top: 12, bottom: height - 40 };
      if (!this.lines.length) {
        element(svg, "text", { class: "tick middle", x: width / 2, y: height / 2 }, "No line is shown on this axis");
        return;
      }
      const [xLow, xHigh] = range(this.stops);
      const [yLow, yHigh] = range(this.lines.flatMap((line) => line.points.map(([, y]) => y)), FROM_ZERO.includes(this.chart.column));
      this.x = (value) => box.left + (value - xLow) / (xHigh - xLow) * (box.right - box.left);
      this.y = (value) => box.bottom - (value - yLow) / (yHigh - yLow) * (box.bottom - box.top);
      for (const value of ticks(yLow, yHigh, 5)) {
        const label = this.chart.column === "accuracy" ? `${Number((100 * value).toPrecision(4))}%` : short(value);
        element(svg, "path", { class: "grid", d: `M${box.left} ${this.y(value)}H${box.right}` });
        element(svg, "text", { class: "tick end", x: box.left - 8, y: this.y(value) + 4 }, label);
      }
      for (const value of ticks(xLow, xHigh, Math.max(3, Math.floor(width / 70))))
        element(svg, "text", { class: "tick middle", x: this.x(value), y: box.bottom + 17 }, short(value));
      element(svg, "text", { class: "tick middle", x: (box.left + box.right) / 2, y: height - 5 }, AXES[unit]);
      this.cross = element(svg, "path", { class: "cross" });
      for (const { series, track, points } of this.lines) {
        const style = `s${series.style % STYLES}`;
        const path = points.map(([x, y], index) => `${index ? "L" : "M"}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`);
        element(svg, "path", { class: `line ${style}${series.thin ? " thin" : ""}`, d: path.join("") });
        const few = !series.thin && points.length <= 60;
        for (const [x, y, index] of points) {
          const place = `translate(${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)})`;
          if (few || (points.length === 1)) element(svg, "path", { class: `mark ${style}`, transform: place, d: MARKS[series.style % STYLES] });
          if (index === track.best) element(svg, "circle", { class: `ring ${style}`, transform: place, r: 7.5 });
        }
      }
      this.dots = element(svg, "g");
      this.box = box;
      this.plot.setAttribute("aria-valuemin", "0");
      this.plot.setAttribute("aria-valuemax", String(this.stops.length - 1));
      this.show(null);
    }

    point(event) {
      if (!this.lines.length) return;
      const bounds = this.plot.getBoundingClientRect();
      const x = event.clientX - bounds.left;
      let nearest = 0;
      this.stops.forEach((stop, index) => {
        if (Math.abs(this.x(stop) - x) < Math.abs(this.x(this.stops[nearest]) - x)) nearest = index;
      });
      this.show(nearest);
    }

    key(event) {
      const last = this.stops.length - 1, now = this.at ?? -1;
      const targets = {
        ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: this.at === null ? last : now - 1,
        ArrowDown: this.at === null ? last : now - 1, PageUp: now + 10, PageDown: now - 10, Home: 0, End: last,
      };
      if (event.key === "Escape") this.show(null);
      if (!(event.key in targets) || last < 0) return;
      event.preventDefault();
      this.show(Math.min(Math.max(targets[event.key], 0), last));
    }

    // Show the values at a stop, for lines that have a point near it; null: none.
    show(index) {
      this.at = index;
      this.tip.hidden = index === null || !this.lines.length;
      this.dots?.replaceChildren();
      this.cross?.removeAttribute("d");
      this.plot.setAttribute("aria-valuenow", String(index ?? 0));
      this.plot.setAttribute("aria-valuetext", index === null ? "no position" : "");
      if (this.tip.hidden) return;
      const stop = this.stops[index];
      this.cross.setAttribute("d", `M${this.x(stop)} ${this.box.top}V${this.box.bottom}`);
      this.tip.replaceChildren();
      const heading = POSITIONS[unit](stop);
      element(this.tip, "strong", {}, heading);
      const words = [heading];
      for (const { series, points } of this.lines) {
        const point = points.reduce((best, other) => Math.abs(other[0] - stop) < Math.abs(best[0] - stop) ? other : best);
        const gaps = points.length > 1 ? (points[points.length - 1][0] - points[0][0]) / (points.length - 1) : 0;
        if (Math.abs(point[0] - stop) > gaps * 0.75 && point[0] !== stop) continue;
        const style = series.style % STYLES;
        const place = POSITIONS[unit](point[0]);
        const value = FORMATS[this.chart.column](point[1]) + (place === heading ? "" : ` (${place})`);
        const row = element(this.tip, "div");
        const swatch = element(row, "svg", { class: "swatch", viewBox: "0 0 36 12" });
        element(swatch, "path", { class: `line s${style}${series.thin ? " thin" : ""}`, d: "M1 6H35" });
        if (!series.thin) element(swatch, "path", { class: `mark s${style}`, transform: "translate(18 6)", d: MARKS[style] });
        element(row, "span", {}, series.label);
        element(row, "b", {}, value);
        words.push(`${series.label} ${value}`);
        element(this.dots, "circle", { class: `mark s${style}`, cx: this.x(point[0]), cy: this.y(point[1]), r: 4.5 });
      }
      this.plot.setAttribute("aria-valuetext", words.join(", "));
      const room = this.width - this.tip.offsetWidth;
      const beside = this.x(stop) > this.width / 2 ? this.x(stop) - this.tip.offsetWidth - 14 : this.x(stop) + 14;
      this.tip.style.left = `${Math.max(0, Math.min(room, beside))}px`;
    }
  }

  for (const figure of document.querySelectorAll("[data-chart]")) charts.push(new ChartView(figure));
  const units = document.getElementById("units");
  if (units && charts.length) {
    units.hidden = document.getElementById("keys").hidden = false;
    for (const input of units.querySelectorAll("input")) {
      input.disabled = !data.tracks.some((track) => track.x[input.value].some((value) => value !== null));
      input.addEventListener("change", () => { unit = input.value; for (const chart of charts) chart.draw(); });
    }
    unit = units.querySelector("input:checked").value;
    for (const chart of charts) chart.draw();
  }

  // --- maps of attention

  const CELL = 22, LEVELS = 24;

  class MapView {
    constructor(figure) {
      this.map = data.maps[Number(figure.dataset.map)];
      this.svg = figure.querySelector("svg");
      this.scroll = figure.querySelector(".scroll");
      this.readout = figure.querySelector(".readout");
      this.bytes = Uint8Array.from(atob(this.map.weights), (letter) => letter.charCodeAt(0));
      this.left = Number(this.svg.dataset.left);
      this.top = Number(this.svg.dataset.top);
      this.cells = this.svg.querySelector(".cells");
      this.cursor = element(this.svg, "rect", { class: "cursor", width: CELL, height: CELL, visibility: "hidden" });
      const tokens = [...this.svg.querySelectorAll(".token")];
      this.columns = tokens.slice(0, this.map.source.length);
      this.rows = tokens.slice(this.map.source.length);
      this.layer = this.map.layers - 1;
      this.head = -1;
      this.at = null;
      this.controls(figure.querySelector(".controls"));
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.show(null));
      this.scroll.addEventListener("keydown", (event) => this.key(event));
      this.scroll.addEventListener("blur", () => this.show(null));
    }

    controls(bar) {
      const { layers, heads } = this.map;
      const choices = (name, count, chosen, mean) => {
        if (count < 2) return;
        const label = element(bar, "label", {}, name);
        const select = element(label, "select");
        if (mean) element(select, "option", { value: -1 }, "mean of all");
        for (let number = 0; number < count; number++) element(select, "option", { value: number }, `${number + 1} of ${count}`);
        select.value = String(chosen);
        select.addEventListener("change", () => {
          this[name.toLowerCase()] = Number(select.value);
          this.draw();
          this.show(this.at);
        });
        bar.hidden = false;
      };
      choices("Layer", layers, this.layer, false);
      choices("Head", heads, this.head, true);
    }

    weight(row, column) {
      const { heads } = this.map, rows = this.rows.length, columns = this.columns.length;
      const of = (head) => this.bytes[((this.layer * heads + head) * rows + row) * columns + column] / 255;
      if (this.head >= 0) return of(this.head);
      let sum = 0;
      for (let head = 0; head < heads; head++) sum += of(head);
      return sum / heads;
    }

    draw() {
      const paths = new Map();
      this.rows.forEach((_, row) => this.columns.forEach((_, column) => {
        const level = Math.round(this.weight(row, column) * LEVELS);
        const x = this.left + CELL * column + 1, y = this.top + CELL * row + 1;
        paths.set(level, `${paths.get(level) ?? ""}M${x} ${y}h20v20h-20z`);
      }));
      this.cells.replaceChildren();
      for (const [level, path] of paths)
        if (level) element(this.cells, "path", { "fill-opacity": level / LEVELS, d: path });
    }

    point(event) {
      const bounds = this.svg.getBoundingClientRect();
      const column = Math.floor((event.clientX - bounds.left - this.left) / CELL);
      const row = Math.floor((event.clientY - bounds.top - this.top) / CELL);
      const inside = row >= 0 && row < this.rows.length && column >= 0 && column < this.columns.length;
      this.show(inside ? [row, column] : null);
    }

    key(event) {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (event.key === "Escape") this.show(null);
      if (!(event.key in moves)) return;
      event.preventDefault();
      const [row, column] = this.at ?? [0, 0];
      const [down, right] = this.at ? moves[event.key] : [0, 0];
      this.show([
        Math.min(Math.max(row + down, 0), this.rows.length - 1),
        Math.min(Math.max(column + right, 0), this.columns.length - 1),
      ]);
      const x = this.left + CELL * this.at[1];
      this.scroll.scrollLeft = Math.min(this.scroll.scrollLeft, Math.max(0, x - this.left));
      this.scroll.scrollLeft = Math.max(this.scroll.scrollLeft, x + 2 * CELL - this.scroll.clientWidth);
    }

    part() {
      const { layers, heads, all_heads: all } = this.map;
      const layer = layers > 1 ? `Layer ${this.layer + 1} of ${layers}` : "One layer";
      if (all < 2) return layer;
      return `${layer}, ${this.head < 0 ? `mean of ${all} heads` : `head ${this.head + 1} of ${heads}`}`;
    }

    show(at) {
      this.at = at;
      this.columns.forEach((token, column) => token.classList.toggle("lit", at !== null && at[1] === column));
      this.rows.forEach((token, row) => token.classList.toggle("lit", at !== null && at[0] === row));
      this.cursor.setAttribute("visibility", at ? "visible" : "hidden");
      this.readout.textContent = this.part();
      if (!at) return;
      const [row, column] = at;
      this.cursor.setAttribute("x", this.left + CELL * column);
      this.cursor.setAttribute("y", this.top + CELL * row);
      const weight = this.weight(row, column).toFixed(2);
      this.readout.textContent = `${this.map.target[row]} → ${this.map.source[column]}: ${weight}`;
    }
  }

  for (const figure of document.querySelectorAll("[data-map]")) new MapView(figure);

  // --- print: all that is folded

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of folded) details.open = false; });

  // --- contents: the section in view

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const [id, link] of links) {
        link.classList.toggle("current", id === entry.target.id);
        if (id === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const id of links.keys()) observer.observe(document.getElementById(id));
})();
