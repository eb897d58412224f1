// The view of one run: it takes events and shows them. PiRun.view(root, options) is all that a page
// needs; a report gives it the events of a log, a live page those that come.

{
  const { el, icon } = PiRun;

  const FILTERS = [
    ["user", "User"],
    ["assistant", "Assistant"],
    ["tools", "Tools"],
    ["control", "Hooks and queues"],
    ["checks", "Checks"],
  ];

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
      this.groups = new Set();
      this.printing = false;
      this.pattern = null;
      this.hits = [];
      this.waiting = new Set();
      this.run = new PiRun.Run({ parting: options.parting ?? null, changed: (what, thing) => this.#changed(what, thing) });
      this.#build(root, options);
    }

    #build(root, options) {
      this.sections = new PiRun.Sections(this);
      this.timeline = new PiRun.Timeline(this);
      this.chart = new PiRun.Chart(this);
      this.outline = new PiRun.Outline(this);
      this.head = new PiRun.Head(this, PiRun.pageTools(this));
      this.bar = this.#toolbar();
      this.empty = el("p", { class: "nothing muted", hidden: true }, "Nothing here is like that.");
      this.panels = el("div", { class: "panels" }, this.head.notices, this.head.summary, this.timeline.element, this.chart.element);
      this.main = el("main", { id: "main", tabindex: "-1" }, this.panels, el("div", { class: "columns-two" }, this.outline.element, el("div", { class: "content" }, this.bar, this.empty, this.sections.element)));
      root.classList.add("pi-run");
      root.replaceChildren(el("a", { class: "skip", href: "#main" }, "Skip to the run"), this.head.element, this.main);
      this.console = this.live ? new PiRun.Console(this, options) : null;
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

    #toolbar() {
      this.search = el("input", { type: "search", class: "search", placeholder: "Search  /", "aria-label": "Search in the run", autocomplete: "off", spellcheck: "false", on: { input: () => this.#typed(), keydown: (event) => this.#searchKey(event) } });
      this.count = el("span", { class: "muted number", role: "status", "aria-live": "polite" });
      const chips = FILTERS.map(([key, name]) => this.#chip(key, name));
      this.only = this.#chip("hits", "Hits alone");
      this.only.hidden = true;
      this.agentSelect = this.#select("Agent", "all agents");
      this.toolSelect = this.#select("Tool", "all tools");
      const outline = el("button", { type: "button", class: "chip outline-button", on: { click: () => document.body.classList.toggle("shows-outline") } }, "Outline");
      const all = el("button", { type: "button", class: "chip", "aria-pressed": "false", on: { click: () => this.unfold(!this.unfolded) } }, "Unfold all");
      this.allButton = all;
      return el("div", { class: "toolbar", role: "search", "aria-label": "Search and filter" }, outline, this.search, this.only, this.count, el("div", { class: "chips", role: "group", "aria-label": "Show alone" }, ...chips, this.#chip("errors", "Errors")), this.agentSelect, this.toolSelect, el("span", { class: "space" }), all);
    }

    #chip(key, name) {
      const flip = () => {
        if (!this.groups.delete(key)) this.groups.add(key);
        chip.setAttribute("aria-pressed", String(this.groups.has(key)));
        this.apply();
      };
      const chip = el("button", { type: "button", class: `chip chip-${key}`, "aria-pressed": "false", on: { click: flip } }, name);
      return chip;
    }

    #select(name, all) {
      const select = el("select", { "aria-label": name, hidden: true, on: { change: () => this.apply() } }, el("option", { value: "" }, all));
      select.known = new Set();
      return select;
    }

    #offer(select, value, least) {
      if (select.known.has(value) || select.known.size > 500) return;
      select.known.add(value);
      const option = el("option", {}, PiRun.oneLine(value, 80));
      option.value = value;
      select.append(option);
      select.hidden = select.known.size < least;
    }

    // --- events -----------------------------------------------------------------------------------

    add(event) {
      this.run.add(event);
    }

    finish() {
      this.run.finish();
      this.schedule();
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
        this.#count(thing);
        this.sections.touch(thing.node);
        if (thing.kind === "call") this.#offer(this.toolSelect, thing.name, 1);
        if (this.unfolded) thing.open = true;
      } else if (what === "changed" || what === "delta") {
        if (thing.element || what === "changed") this.waiting.add(thing);
        if (what === "changed") this.sections.touch(thing.node);
      } else if (what === "usage") this.sections.touch(thing);
      else if (what === "agent") this.#offer(this.agentSelect, thing.path, 2);
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

    // --- search and filter ------------------------------------------------------------------------

    #typed() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.apply(), 140);
    }

    #searchKey(event) {
      if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(this.timer);
        if (this.query !== this.search.value) this.apply();
        this.hit(event.shiftKey ? -1 : 1, true);
      } else if (event.key === "Escape") {
        this.search.value = "";
        this.apply();
        this.main.focus({ preventScroll: true });
      }
    }

    get filtered() {
      const kinds = [...this.groups].some((key) => key !== "hits");
      return kinds || (this.groups.has("hits") && this.pattern !== null) || this.agentSelect.value !== "" || this.toolSelect.value !== "";
    }

    /** Whether an item passes the filters. */
    shows(item) {
      if (!this.filtered) return true;
      const { groups } = this;
      if (this.agentSelect.value && item.agent.path !== this.agentSelect.value) return false;
      if (this.toolSelect.value && (item.call ?? item).name !== this.toolSelect.value) return false;
      if (groups.has("errors") && !item.error) return false;
      if (groups.has("hits") && this.pattern && !item.hit) return false;
      const kinds = FILTERS.some(([key]) => groups.has(key));
      return !kinds || groups.has(PiRun.groupOf(item));
    }

    /** Search and filter anew. */
    apply() {
      this.query = this.search.value;
      const words = this.query.trim();
      this.pattern = words ? new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu") : null;
      this.only.hidden = !this.pattern;
      this.hits = [];
      this.at = -1;
      let shown = 0;
      for (const node of PiRun.walk(this.run.root)) {
        node.hits = 0;
        node.below = 0;
        for (const item of node.items) {
          item.hit = this.pattern !== null && matches(item, this.pattern);
          if (!this.shows(item)) continue;
          node.hits += 1;
          if (item.hit) this.hits.push(item);
        }
        shown += node.hits;
        if (node.hits) for (let one = node; one; one = one.parent) one.below += node.hits;
      }
      for (const node of PiRun.walk(this.run.root)) if (node.kind === "task" || node.kind === "agent") node.hits = node.below;
      this.empty.hidden = !this.filtered || shown > 0;
      this.outline.stale = true;
      this.sections.refresh();
      this.#tellHits();
      this.schedule();
    }

    #count(item) {
      if (!this.filtered && !this.pattern) return;
      item.hit = this.pattern !== null && matches(item, this.pattern);
      if (!this.shows(item)) return;
      item.node.hits = (item.node.hits ?? 0) + 1;
      for (let one = item.node; one; one = one.parent) {
        one.below = (one.below ?? 0) + 1;
        if (one.kind === "task" || one.kind === "agent") {
          one.hits = one.below;
          this.sections.touch(one);
        }
      }
      if (item.hit) {
        this.hits.push(item);
        this.#tellHits();
      }
    }

    #tellHits() {
      this.count.textContent = this.pattern ? (this.hits.length ? `${this.at + 1 || "–"} of ${PiRun.number(this.hits.length)}` : "no hit") : "";
    }

    /** Go to the next hit, or the one before. */
    hit(by, stay = false) {
      if (!this.hits.length) return;
      this.at = (this.at + by + this.hits.length + (this.at < 0 && by < 0 ? 1 : 0)) % this.hits.length;
      this.#tellHits();
      const item = this.hits[this.at];
      if (item.kind === "call" || item.kind !== "message") item.open = true;
      else item.folded = false;
      if (item.kind === "message") item.full = new Set((item.message.content ?? []).keys());
      else item.full = new Set(["arguments", "details", "text", "value", "result 0"]);
      this.open(item, { focus: !stay });
      item.element?.querySelector("mark")?.scrollIntoView({ block: "center" });
    }

    unfold(open) {
      this.unfolded = open;
      this.allButton.setAttribute("aria-pressed", String(open));
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
      if (!node.element || node.element.hidden || (thing.node && !this.shows(thing))) this.clear();
      if (!node.element) return;
      this.sections.ensure(node);
      if (thing.element) this.redraw(thing);
      const target = thing.node ? thing.element : node.element;
      target?.scrollIntoView({ block: thing.node ? "center" : "start" });
      const place = thing.node ? target : (target.querySelector("button") ?? target);
      if (focus) place?.focus({ preventScroll: true });
      this.outline.point(node);
    }

    /** Take all filters off. */
    clear() {
      this.groups.clear();
      for (const chip of this.bar.querySelectorAll(".chips [aria-pressed], .chip-hits")) chip.setAttribute("aria-pressed", "false");
      this.agentSelect.value = "";
      this.toolSelect.value = "";
      this.apply();
    }

    #spy() {
      cancelAnimationFrame(this.spying);
      this.spying = requestAnimationFrame(() => {
        const box = this.sections.element.getBoundingClientRect();
        const top = this.head.element.offsetHeight + this.bar.offsetHeight + 24;
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
        this.sections.ensure(node);
        if ((left -= node.items.length) < 0) break;
      }
      this.sections.refresh();
      this.draw();
    }
  }

  function matches(item, pattern) {
    for (const text of PiRun.textsOf(item)) if (text.search(pattern) >= 0) return true;
    return false;
  }

  /** Let the style sheet know how high the page's top is, below which other things stick. */
  PiRun.measureTop = (top) => {
    const root = document.documentElement;
    const tell = () => root.style.setProperty("--top", getComputedStyle(top).position === "sticky" ? `${top.offsetHeight}px` : "0px");
    new ResizeObserver(tell).observe(top);
  };

  /** Buttons for the page as a whole. */
  PiRun.pageTools = () =>
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "small", title: "Dark or light (t)", "aria-label": "Dark or light", on: { click: PiRun.flipTheme } }, icon("theme")),
      el("button", { type: "button", class: "small", title: "Keys (?)", "aria-label": "Keys", on: { click: PiRun.showKeys } }, "?"),
    );
}
