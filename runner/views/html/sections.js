// The run as a list of sections, one a task, agent or turn, its items in chunks. What a section or a
// chunk has in it is built when that comes near the window and let go of when it is far away, so that
// a page of any length stays light.

{
  const { el, icon, oneLine, plural } = PiRun;
  const KEPT = 80;
  const SIZE = 40;
  const NEAR = "900px 0px";
  const ROW = 62;

  const lastBelow = (node) => (node.children.length ? lastBelow(node.children.at(-1)) : node);

  PiRun.Sections = class Sections {
    constructor(view) {
      this.view = view;
      this.element = el("div", { class: "sections" });
      this.built = new Set();
      this.chunks = new Set();
      this.dirty = new Set();
      this.watcher = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: NEAR });
    }

    /** Give a new node its place: it is the last child of its parent. */
    add(node) {
      const element = el("section", { class: `section section-${node.kind}` });
      element.style.setProperty("--depth", String(Math.min(node.depth, 6)));
      element.node = node;
      node.element = element;
      node.chunks = [];
      const before = node.parent.children.at(-2);
      const after = before ? lastBelow(before) : node.parent;
      if (after.element) after.element.after(element);
      else this.element.prepend(element);
      this.#estimate(node);
      this.hide(node);
      this.watcher.observe(element);
    }

    /** A node or one of its items changed, or it got a new one. */
    touch(node) {
      if (node.element) this.dirty.add(node);
    }

    flush() {
      for (const node of this.dirty) {
        this.hide(node);
        if (this.built.has(node)) this.#update(node);
        else this.#estimate(node);
      }
      this.dirty.clear();
    }

    /** What is shown is chosen anew: build again what is in sight, and forget what the rest was. */
    refresh() {
      if (!this.view.printing) for (const chunk of [...this.chunks].filter(isOutOfSight)) this.#empty(chunk);
      for (const node of PiRun.walk(this.view.run.root)) {
        if (!node.element) continue;
        this.hide(node);
        if (this.built.has(node)) this.#fill(node);
        else this.#estimate(node);
      }
    }

    /** Whether a node is shown at all, from what is folded and what is looked for. */
    hide(node) {
      node.element.hidden = isFolded(node.parent) || !this.#wanted(node);
    }

    /** Have a node's content in the page, and an item's, or that of all its items. */
    ensure(node, items = []) {
      if (!this.built.has(node)) this.#fill(node);
      for (const item of items) {
        const chunk = node.chunks[Math.floor(item.index / SIZE)];
        if (chunk) this.#draw(chunk);
      }
    }

    drawItem(item) {
      if (!item.element?.isConnected) return;
      const old = item.element;
      const focused = old.contains(document.activeElement);
      const place = focused ? [...old.querySelectorAll("button")].indexOf(document.activeElement) : -1;
      const element = PiRun.drawItem(item, this.view);
      old.replaceWith(element);
      if (focused) (element.querySelectorAll("button")[place] ?? element).focus({ preventScroll: true });
    }

    /** Fold a node, or unfold it. */
    toggle(node, open = Boolean(node.folded)) {
      node.folded = !open;
      for (const one of PiRun.walk(node)) if (one !== node) this.hide(one);
      if (this.built.has(node)) this.#fill(node, true);
      this.view.schedule();
    }

    #wanted(node) {
      if (!this.view.find.filtered) return node.kind !== "between" || node.items.length > 0;
      return node.hits > 0;
    }

    #seen(entries) {
      for (const { isIntersecting, target } of entries) {
        const { node, chunk } = target;
        if (isIntersecting) {
          if (node) this.ensure(node);
          else this.#draw(chunk);
        } else if (!this.view.printing && !target.contains(document.activeElement)) {
          if (node && this.built.size > KEPT) this.#release(node);
          else if (chunk && this.chunks.size > KEPT) this.#empty(chunk);
        }
      }
    }

    #release(node) {
      if (!this.built.delete(node)) return;
      node.height = node.element.offsetHeight || node.height;
      this.#drop(node);
      node.element.replaceChildren();
      this.#estimate(node);
    }

    #estimate(node) {
      const items = node.folded ? 0 : this.view.find.filtered ? Math.min(node.hits ?? 0, node.items.length) : node.items.length;
      node.element.style.minHeight = `${node.height ?? 38 + ROW * items}px`;
    }

    /** Build a section: its heading, and its chunks, of which those stay drawn that were. */
    #fill(node, refocus = false) {
      const drawn = new Set(node.chunks.filter((chunk) => this.chunks.has(chunk)).map((chunk) => chunk.from));
      const focused = refocus && node.element.contains(document.activeElement);
      this.#drop(node);
      this.built.add(node);
      node.element.style.minHeight = "";
      node.element.replaceChildren(...heading(node, this));
      if (!node.folded) this.#grow(node);
      for (const chunk of node.chunks) if (drawn.has(chunk.from)) this.#draw(chunk);
      if (focused) node.element.querySelector("button")?.focus({ preventScroll: true });
    }

    #update(node) {
      const head = node.element.querySelector(":scope > .heading");
      const [fresh] = heading(node, this);
      if (head && fresh && !head.contains(document.activeElement)) head.replaceWith(fresh);
      if (node.folded) return;
      const last = node.chunks.at(-1);
      if (last && this.chunks.has(last)) this.#append(last);
      else if (last) this.#settle(last);
      this.#grow(node);
    }

    // --- chunks -----------------------------------------------------------------------------------

    /** Add the chunks that a node's items need. */
    #grow(node) {
      for (let from = node.chunks.length * SIZE; from < node.items.length; from += SIZE) {
        const chunk = { node, from, drawn: from, element: el("ol", { class: "items" }) };
        chunk.element.chunk = chunk;
        node.chunks.push(chunk);
        node.element.append(chunk.element);
        this.#settle(chunk);
        this.watcher.observe(chunk.element);
        // Most sections have one, and are drawn at once.
        if (!from) this.#draw(chunk);
      }
    }

    #items(chunk, from = chunk.from) {
      return chunk.node.items.slice(from, chunk.from + SIZE).filter((item) => this.view.find.shows(item));
    }

    #settle(chunk) {
      const count = this.#items(chunk).length;
      chunk.element.hidden = !count;
      chunk.element.style.minHeight = this.chunks.has(chunk) ? "" : `${chunk.height ?? ROW * count}px`;
    }

    #draw(chunk) {
      if (this.chunks.has(chunk)) return;
      this.chunks.add(chunk);
      chunk.drawn = chunk.from;
      this.#append(chunk);
    }

    #append(chunk) {
      chunk.element.append(...this.#items(chunk, chunk.drawn).map((item) => PiRun.drawItem(item, this.view)));
      chunk.drawn = Math.min(chunk.from + SIZE, chunk.node.items.length);
      this.#settle(chunk);
    }

    #empty(chunk) {
      this.chunks.delete(chunk);
      chunk.height = chunk.element.offsetHeight || chunk.height;
      chunk.element.replaceChildren();
      for (const item of chunk.node.items.slice(chunk.from, chunk.from + SIZE)) item.element = null;
      this.#settle(chunk);
    }

    /** Forget a node's chunks. */
    #drop(node) {
      for (const chunk of node.chunks) {
        this.chunks.delete(chunk);
        this.watcher.unobserve(chunk.element);
      }
      for (const item of node.items) item.element = null;
      node.chunks = [];
    }
  };

  function isOutOfSight({ element }) {
    const { top, bottom } = element.getBoundingClientRect();
    return bottom < 0 || top > innerHeight;
  }

  function isFolded(node) {
    for (let one = node; one; one = one.parent) if (one.folded) return true;
    return false;
  }
  PiRun.isFolded = isFolded;

  /** What a node is called. */
  PiRun.nameOf = (node) => {
    if (node.kind === "turn") return `Turn ${node.turn}`;
    if (node.kind === "agent") return `Agent ${oneLine(node.path, 80)}`;
    if (node.kind === "task") return `Task ${oneLine(node.id, 60)}${node.iteration > 1 || node.item !== undefined ? ` #${node.iteration}` : ""}`;
    return "";
  };

  /** How a node stands: running, ok, error, skipped or stopped. */
  PiRun.stateOf = (node, run) => {
    if (node.status === "skipped") return "skip";
    if (!node.ended) return run.over ? "stopped" : "running";
    // A task may well end as it should though a call in it failed.
    if (node.kind !== "turn") return node.unmet || (node.status ?? "ok") !== "ok" ? "error" : "ok";
    return node.error ? "error" : "ok";
  };

  function heading(node, sections) {
    if (node.kind === "between") return [];
    const { view } = sections;
    const level = node.kind === "task" ? "h2" : node.kind === "turn" && node.depth ? "h4" : "h3";
    const state = PiRun.stateOf(node, view.run);
    const button = el(
      "button",
      { type: "button", class: "fold", "aria-expanded": String(!node.folded), on: { click: () => sections.toggle(node) } },
      icon("chevron"),
      node.kind !== "turn" && icon(state),
      PiRun.nameOf(node),
    );
    const item = node.item === undefined ? "" : oneLine(PiRun.json(node.item), 120);
    return [
      el(
        "div",
        { class: `heading heading-${node.kind} is-${state}` },
        el(level, {}, button),
        item && el("span", { class: "muted mono ellipsis" }, item),
        el("span", { class: "space" }),
        el("span", { class: "muted number" }, figures(node, view).join(" · ")),
        node.kind === "turn" && node.error && icon("error"),
      ),
    ];
  }

  function figures(node, view) {
    const parts = [];
    if (node.calls) parts.push(plural(node.calls, "call"));
    if (node.kind === "turn") {
      if (node.usage && PiRun.tokensOf(node.usage)) parts.push(`${PiRun.compact(PiRun.tokensOf(node.usage))} tokens`);
      if (node.cost) parts.push(PiRun.dollars(node.cost));
      if (node.stop && !["stop", "tool_use"].includes(node.stop)) parts.push(node.stop);
    }
    if (node.ended && view.run.timed) parts.push(PiRun.duration(node.until - node.at));
    return parts;
  }
}
