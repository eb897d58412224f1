// The run in time: a lane for each agent's tasks, turns and model calls, and as many as it takes for
// tools at the same time. Only the bars in sight are in the page; those too small to tell are one.

{
  const { el, icon, oneLine } = PiRun;
  const ROW = 22;
  const SMALL = 4;
  const PAPER = 600;

  PiRun.Timeline = class Timeline {
    /** `label` names the run where there is more than one. */
    constructor(view, { label = "Timeline" } = {}) {
      this.view = view;
      this.run = view.run;
      this.begin = 0;
      this.end = 0; // 0: all of it
      this.lanes = new PiRun.Lanes(this.run);
      this.selected = null;
      this.#build(label);
    }

    #build(label) {
      const button = (name, key, text, act) => el("button", { type: "button", class: "small", title: `${name} (${key})`, "aria-label": name, on: { click: act } }, text);
      this.axis = el("div", { class: "tl-axis" });
      this.names = el("div", { class: "tl-names" });
      this.bars = el("div", { class: "tl-bars" });
      this.space = el("div", { class: "tl-space" }, this.names, this.bars);
      this.body = el(
        "div",
        { class: "tl-body", tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-label": `${label}: arrow keys go from bar to bar, Enter opens one, plus and minus zoom, 0 shows all` },
        this.space,
      );
      this.told = el("p", { class: "sr", "aria-live": "polite" });
      this.legend = el("div", { class: "tl-legend", "aria-hidden": "true" }, ...["turn", "model", "tool", "error"].map((kind) => el("span", {}, el("i", { class: `swatch bar-${kind}` }), kind === "error" ? "failed" : kind)));
      this.tip = el("div", { class: "tl-tip", hidden: true, "aria-hidden": "true" });
      this.element = el(
        "section",
        { class: "panel timeline", "aria-label": label },
        el("div", { class: "panel-head" }, el("h2", {}, label), this.legend, el("span", { class: "space" }), el("div", { class: "buttons" }, button("Zoom out", "-", "−", () => this.zoom(2)), button("Zoom in", "+", "+", () => this.zoom(0.5)), button("Fit all in", "0", "Fit", () => this.fit()))),
        this.axis,
        this.body,
        this.tip,
        this.told,
      );
      this.body.addEventListener("scroll", () => this.view.schedule());
      this.body.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
      this.body.addEventListener("keydown", (event) => this.#key(event));
      this.body.addEventListener("pointerdown", (event) => this.#drag(event));
      this.body.addEventListener("click", (event) => this.#click(event));
      this.body.addEventListener("dblclick", (event) => this.zoom(0.5, this.#timeAt(event.clientX)));
      this.body.addEventListener("pointermove", (event) => this.#hover(event));
      this.body.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      new ResizeObserver(() => this.view.schedule()).observe(this.body);
    }

    /** First and last moment in sight. */
    range() {
      const from = this.run.from ?? 0;
      const until = Math.max(this.shared ?? 0, this.run.until - from, 1e-6) + from;
      return this.end ? [this.begin, this.end] : [from, until];
    }

    fit() {
      this.end = 0;
      this.view.schedule();
    }

    /** Show more of the time (factor > 1) or less, around a moment. */
    zoom(factor, around) {
      const [a, b] = this.range();
      const from = this.run.from ?? 0;
      const until = Math.max(this.shared ?? 0, this.run.until - from) + from;
      const middle = around ?? (this.selected ? (this.selected.at + (this.selected.end ?? until)) / 2 : (a + b) / 2);
      const width = Math.max((b - a) * factor, (until - from) / 1e5, 1e-5);
      if (width >= until - from) return this.fit();
      const share = around === undefined ? 0.5 : (middle - a) / (b - a);
      this.begin = Math.min(Math.max(middle - width * share, from), until - width);
      this.end = this.begin + width;
      this.view.schedule();
    }

    #pan(seconds) {
      if (!this.end) return;
      const from = this.run.from ?? 0;
      const until = Math.max(this.shared ?? 0, this.run.until - from) + from;
      const width = this.end - this.begin;
      this.begin = Math.min(Math.max(this.begin + seconds, from), until - width);
      this.end = this.begin + width;
      this.view.schedule();
    }

    draw() {
      if (this.view.printing) this.end = 0;
      this.lanes.layOut();
      this.element.hidden = !this.lanes.count;
      this.space.style.height = `${this.lanes.count * ROW + 4}px`;
      const [a, b] = this.range();
      // On paper the width is not known before it is too late: all stands in parts of this one.
      const width = this.view.printing ? PAPER : this.bars.clientWidth || 800;
      const scale = width / (b - a);
      const first = this.view.printing ? 0 : Math.floor(this.body.scrollTop / ROW) - 1;
      const last = this.view.printing ? 120 : first + Math.ceil(this.body.clientHeight / ROW) + 2;
      const names = [];
      const bars = [];
      for (const row of this.lanes.rows(first, last)) {
        const name = el("div", { class: row.agent ? "tl-agent" : "tl-name" }, oneLine(row.name, 40));
        if (row.agent) name.title = PiRun.visible(row.agent.path);
        name.style.top = `${row.at * ROW}px`;
        names.push(name);
        if (row.spans) this.#row(row, a, b, scale, bars);
      }
      this.#marks(a, b, scale, bars);
      this.names.replaceChildren(...names);
      this.bars.replaceChildren(...bars);
      this.#ticks(a, b, width);
    }

    #row(row, a, b, scale, bars) {
      const { spans } = row;
      const now = this.run.until;
      let low = 0;
      let high = spans.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((spans[middle].end ?? Infinity) < a) low = middle + 1;
        else high = middle;
      }
      let previous = null;
      for (let index = low; index < spans.length && spans[index].at <= b; index++) {
        const span = spans[index];
        const left = Math.max((span.at - a) * scale, -2);
        const right = Math.min(((span.end ?? now) - a) * scale, (b - a) * scale + 2);
        const size = Math.max(right - left, 3);
        if (previous && size <= SMALL && previous.size <= SMALL * 3 && left < previous.left + previous.size + 1 && span !== this.selected) {
          previous.size = Math.max(left + size - previous.left, previous.size);
          previous.count += 1;
          previous.error ||= Boolean(span.error);
          continue;
        }
        previous = { span, left, size, count: 1, error: Boolean(span.error) };
        bars.push(previous);
        previous.top = row.at * ROW;
      }
      for (let index = bars.length - 1; index >= 0 && !(bars[index] instanceof Node); index--) bars[index] = this.#bar(bars[index]);
    }

    #bar({ span, left, size, top, count, error }) {
      const state = error ? " bar-error" : span.kind === "turn" && span.node.error ? " has-error" : "";
      const live = span.end === null && !this.run.end ? " bar-live" : "";
      const chosen = span === this.selected ? " is-selected" : "";
      const many = count > 1 ? " bar-many" : "";
      const bar = el("div", { class: `bar bar-${span.kind}${state}${live}${chosen}${many}` }, count === 1 ? this.#fitting(span, size) : "");
      this.#put(bar, left, top + 2);
      bar.style.width = this.view.printing ? `${((100 * size) / PAPER).toFixed(2)}%` : `${size.toFixed(1)}px`;
      bar.span = span;
      bar.count = count;
      return bar;
    }

    #put(element, left, top) {
      if (this.view.printing) element.style.left = `${((100 * left) / PAPER).toFixed(2)}%`;
      element.style.transform = `translate(${this.view.printing ? 0 : left.toFixed(1)}px, ${top}px)`;
    }

    /** A bar's label, where enough of it can be read. */
    #fitting(span, size) {
      const label = labelOf(span, size);
      const most = Math.floor((size - 9) / 6.2);
      return label.length <= most ? label : most >= 6 ? `${label.slice(0, most - 1)}…` : "";
    }

    #marks(a, b, scale, bars) {
      let free = -Infinity;
      const marks = this.run.parted ? [...this.run.marks, { at: this.run.parted.at, kind: "parting", text: "a replay parted here", item: this.run.parted }] : this.run.marks;
      for (const mark of marks) {
        const left = (mark.at - a) * scale;
        if (mark.at < a || mark.at > b || (left < free && mark.kind !== "parting")) continue;
        free = left + 3;
        const line = el("div", { class: `tl-mark mark-${mark.kind}` });
        this.#put(line, left, 0);
        line.style.height = `${this.lanes.count * ROW}px`;
        line.mark = mark;
        bars.push(line);
      }
    }

    #ticks(a, b, width) {
      const from = this.run.from ?? 0;
      const ticks = PiRun.ticks(a - from, b - from, width, this.run.timed).map(([time, text]) => {
        const tick = el("span", {}, text);
        this.#put(tick, ((time + from - a) * width) / (b - a), 0);
        return tick;
      });
      this.axis.replaceChildren(...ticks);
    }

    // --- hands ------------------------------------------------------------------------------------

    #timeAt(x) {
      const box = this.bars.getBoundingClientRect();
      const [a, b] = this.range();
      return a + ((x - box.left) / box.width) * (b - a);
    }

    #wheel(event) {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#timeAt(event.clientX));
      } else if (this.end && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const [a, b] = this.range();
        this.#pan(((b - a) * event.deltaX) / this.bars.clientWidth);
      }
    }

    #drag(event) {
      if (event.button !== 0 || !this.end) return;
      let last = event.clientX;
      this.dragged = false;
      const move = (now) => {
        if (Math.abs(now.clientX - event.clientX) > 3) this.dragged = true;
        const [a, b] = this.range();
        this.#pan(((last - now.clientX) / this.bars.clientWidth) * (b - a));
        last = now.clientX;
      };
      const done = () => {
        removeEventListener("pointermove", move);
        removeEventListener("pointerup", done);
      };
      addEventListener("pointermove", move);
      addEventListener("pointerup", done);
    }

    #click(event) {
      if (this.dragged) {
        this.dragged = false;
        return;
      }
      const target = event.target.closest(".bar, .tl-mark");
      if (target?.span && target.count > 1) this.zoom(0.25, this.#timeAt(event.clientX));
      else if (target?.span) this.select(target.span, true);
      else if (target?.mark) this.view.open(target.mark.item);
    }

    #hover(event) {
      const target = event.target.closest(".bar, .tl-mark");
      this.tip.hidden = !target;
      if (!target) return;
      this.tip.textContent = target.mark ? PiRun.visible(target.mark.text) : target.count > 1 ? `${target.count} bars; click to zoom in` : this.#told(target.span);
      const box = this.element.getBoundingClientRect();
      const x = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 8);
      this.tip.style.transform = `translate(${Math.max(x, 4)}px, ${event.clientY - box.top + 16}px)`;
    }

    #told(span) {
      const took = this.run.timed ? (span.end === null ? "not ended" : PiRun.duration(span.end - span.at)) : "";
      const name = { turn: `turn ${span.node?.turn}`, task: `task ${span.node?.id}`, model: `model ${span.label ?? ""}`, tool: `tool ${span.label}` }[span.kind];
      const when = this.run.timed ? `at ${PiRun.duration(span.at - (this.run.from ?? 0))}` : "";
      return [oneLine(name, 80), took, when, span.error ? "failed" : "", span.agent.path === "main" ? "" : oneLine(span.agent.path, 60)].filter(Boolean).join(" · ");
    }

    select(span, open = false) {
      this.selected = span;
      this.told.textContent = this.#told(span);
      if (this.end && (span.at > this.end || (span.end ?? span.at) < this.begin)) this.#pan(span.at - (this.begin + this.end) / 2);
      const row = this.lanes.rowOf(span);
      const top = row * ROW;
      if (top < this.body.scrollTop) this.body.scrollTop = top;
      else if (top + ROW > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + ROW - this.body.clientHeight;
      if (open) this.view.open(span.item ?? span.node);
      this.view.schedule();
    }

    #key(event) {
      const acts = {
        ArrowRight: () => this.#go(this.lanes.along(this.selected, 1)),
        ArrowLeft: () => this.#go(this.lanes.along(this.selected, -1)),
        ArrowDown: () => this.#go(this.lanes.across(this.selected, 1)),
        ArrowUp: () => this.#go(this.lanes.across(this.selected, -1)),
        Enter: () => this.selected && this.select(this.selected, true),
        "+": () => this.zoom(0.5),
        "=": () => this.zoom(0.5),
        "-": () => this.zoom(2),
        0: () => this.fit(),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      acts[event.key]();
    }

    #go(span) {
      if (span) this.select(span);
    }
  };

  function labelOf(span, size) {
    if (span.kind === "turn") return size > 56 ? `turn ${span.node.turn}` : String(span.node.turn);
    if (span.kind === "task") return oneLine(span.node.id + (span.node.iteration > 1 ? ` #${span.node.iteration}` : ""), 60);
    return oneLine(span.label ?? "", 60);
  }
}
