// The view of one run: it takes events and shows them. PiRun.view(root, options) is all that a page
// needs; a report gives it the events of a log, a live page those that come.

{
  const { el, icon } = PiRun;

  /**
   * Show a run in an element. Options: `name`, `live` (whether more events will come), `parting`
   * (where a replay parted from the log), `onAction(action)` for a live page; see live.js.
   *
   * Gives a view: `add(event)` takes the next event, in the order of the log; one that came already
   * is left out. `finish()` says that no more will come, `notice(text, kind)` tells the reader
   * something (kind: info or error), `open(thing)` goes to a node or an item.
   */
  PiRun.view = (root, options = {}) => new View(root, options);

  class View {
    constructor(root, options) {
      this.name = options.name;
      this.live = Boolean(options.live);
      this.onAction = options.onAction ?? null;
      this.printing = false;
      this.waiting = new Set();
      this.run = new PiRun.Run({ parting: options.parting ?? null, changed: (what, thing) => this.#changed(what, thing) });
      this.#build(root);
    }

    #build(root) {
      this.sections = new PiRun.Sections(this);
      this.timeline = new PiRun.Timeline(this);
      this.chart = new PiRun.Chart(this);
      this.outline = new PiRun.Outline(this);
      this.head = new PiRun.Head(this, PiRun.pageTools());
      this.find = new PiRun.Find(this);
      this.panels = el("div", { class: "panels" }, this.head.notices, this.head.summary, this.timeline.element, this.chart.element);
      this.main = el("main", { id: "main", tabindex: "-1" }, this.panels, el("div", { class: "columns-two" }, this.outline.element, el("div", { class: "content" }, this.find.element, this.find.empty, this.sections.element)));
      root.classList.add("pi-run");
      root.replaceChildren(el("a", { class: "skip", href: "#main" }, "Skip to the run"), this.head.element, this.main);
      this.console = this.live ? new PiRun.Console(this) : null;
      if (this.console) {
        root.append(this.console.element);
        this.console.draw();
      }
      PiRun.keys(this);
      PiRun.measureTop(this.head.element);
      addEventListener("beforeprint", () => this.#print(true));
      addEventListener("afterprint", () => this.#print(false));
      addEventListener("scroll", () => this.#spy(), { passive: true });
      this.schedule();
    }

    // --- events -----------------------------------------------------------------------------------

    add(event) {
      this.run.add(event);
    }

    finish() {
      this.run.finish();
      this.seen = -1;
      for (const node of PiRun.walk(this.run.root)) if (!node.ended) this.sections.touch(node);
      this.schedule();
    }

    /** What is looked for, a regular expression, or null. */
    get pattern() {
      return this.find.pattern;
    }

    notice(text, kind) {
      this.head.notice(text, kind);
    }

    #changed(what, thing) {
      if (what === "node") {
        if (thing.element) this.sections.touch(thing);
        else this.sections.add(thing);
        this.outline.stale = true;
      } else if (what === "item") {
        this.find.take(thing);
        this.sections.touch(thing.node);
        if (this.unfolded) thing.open = true;
      } else if (what === "changed" || what === "delta") {
        if (thing.element || what === "changed") this.waiting.add(thing);
        if (what === "changed") this.sections.touch(thing.node);
      } else if (what === "usage") this.sections.touch(thing);
      else if (what === "agent") this.find.offerAgent(thing);
      this.schedule();
    }

    redraw(item) {
      this.sections.drawItem(item);
    }

    /** Draw what changed, once before the next picture. */
    schedule() {
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }

    draw() {
      const follows = this.live && innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
      for (const item of this.waiting) {
        if (item.ended || !item.element) this.sections.drawItem(item);
        else PiRun.extendItem(item, this);
      }
      this.waiting.clear();
      this.sections.flush();
      this.outline.draw();
      this.timeline.draw();
      if (this.seen !== this.run.count || this.printing) {
        this.seen = this.run.count;
        this.chart.draw();
        this.head.draw();
        this.console?.draw();
      }
      if (follows && !this.run.end) scrollTo(0, document.documentElement.scrollHeight);
    }

    unfold(open) {
      this.unfolded = open;
      this.find.all.setAttribute("aria-pressed", String(open));
      for (const node of PiRun.walk(this.run.root)) {
        node.folded = false;
        for (const item of node.items) if (item.kind !== "message") item.open = open;
      }
      this.outline.stale = true;
      this.sections.refresh();
      this.schedule();
    }

    // --- going about ------------------------------------------------------------------------------

    /** Go to a node or an item: show it, scroll to it and put the focus there. */
    open(thing, { focus = true } = {}) {
      if (!thing) return;
      const node = thing.node ?? thing;
      for (let one = thing.node ? node : node.parent; one; one = one.parent) if (one.folded) this.sections.toggle(one, true);
      if (!node.element || node.element.hidden || (thing.node && !this.find.shows(thing))) this.find.clear();
      if (!node.element) return;
      this.sections.ensure(node, thing.node ? [thing] : []);
      if (thing.node) this.redraw(thing);
      const target = thing.node ? thing.element : node.element;
      target?.scrollIntoView({ block: thing.node ? "center" : "start" });
      const place = thing.node ? target : (target.querySelector("button") ?? target);
      if (focus) place?.focus({ preventScroll: true });
      this.outline.point(node);
    }

    #spy() {
      cancelAnimationFrame(this.spying);
      this.spying = requestAnimationFrame(() => {
        const box = this.sections.element.getBoundingClientRect();
        const top = this.head.element.offsetHeight + this.find.element.offsetHeight + 24;
        if (box.top > innerHeight || box.bottom < 0) return;
        const focused = document.activeElement?.closest(".section");
        const place = focused?.node && document.activeElement.getBoundingClientRect();
        if (place && place.bottom > top && place.top < innerHeight) return this.outline.point(focused.node);
        const under = document.elementFromPoint(Math.min(box.left + 60, innerWidth - 2), Math.max(top, box.top + 4));
        this.outline.point(under?.closest(".section")?.node);
      });
    }

    /** For paper everything that has a place there is built and unfolded. */
    #print(printing) {
      this.printing = printing;
      let left = 1500;
      for (const node of PiRun.walk(this.run.root)) {
        if (!printing || !node.element || node.element.hidden) continue;
        this.sections.ensure(node, node.items);
        if ((left -= node.items.length) < 0) break;
      }
      this.sections.refresh();
      this.draw();
    }
  }

  /** Let the style sheet know how high the page's top is, below which other things stick. */
  PiRun.measureTop = (top) => {
    const root = document.documentElement;
    const tell = () => root.style.setProperty("--top", getComputedStyle(top).position === "sticky" ? `${top.offsetHeight}px` : "0px");
    new ResizeObserver(tell).observe(top);
  };

  /** Buttons for the page as a whole; `keys` are those that it tells. */
  PiRun.pageTools = (keys) =>
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "small", title: "Dark or light (t)", "aria-label": "Dark or light", on: { click: PiRun.flipTheme } }, icon("theme")),
      el("button", { type: "button", class: "small", title: "Keys (?)", "aria-label": "Keys", on: { click: () => PiRun.showKeys(keys) } }, "?"),
    );
}
