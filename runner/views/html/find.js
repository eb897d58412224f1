// Search and filters: a toolbar, which items pass, and the hits to go through.

{
  const { el } = PiRun;

  const FILTERS = [
    ["user", "User"],
    ["assistant", "Assistant"],
    ["tools", "Tools"],
    ["control", "Hooks, queues"],
    ["checks", "Checks"],
  ];

  PiRun.Find = class Find {
    constructor(view) {
      this.view = view;
      this.groups = new Set();
      this.pattern = null;
      this.hits = [];
      this.empty = el("p", { class: "nothing muted", hidden: true }, "Nothing here is like that.");
      this.element = this.#toolbar();
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
      this.all = el("button", { type: "button", class: "chip", "aria-pressed": "false", on: { click: () => this.view.unfold(!this.view.unfolded) } }, "Unfold all");
      return el("div", { class: "toolbar", role: "search", "aria-label": "Search and filter" }, outline, this.search, this.only, this.count, el("div", { class: "chips", role: "group", "aria-label": "Show alone" }, ...chips, this.#chip("errors", "Errors")), this.agentSelect, this.toolSelect, el("span", { class: "space" }), this.all);
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

    /** Let a new agent be chosen. */
    offerAgent(agent) {
      this.#offer(this.agentSelect, agent.path, 2);
    }

    #offer(select, value, least) {
      if (select.known.has(value) || select.known.size > 500) return;
      select.known.add(value);
      const option = el("option", {}, PiRun.oneLine(value, 80));
      option.value = value;
      select.append(option);
      select.hidden = select.known.size < least;
    }

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
        this.view.main.focus({ preventScroll: true });
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
      for (const node of PiRun.walk(this.view.run.root)) {
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
      for (const node of PiRun.walk(this.view.run.root)) if (node.kind === "task" || node.kind === "agent") node.hits = node.below;
      this.empty.hidden = !this.filtered || shown > 0;
      this.view.outline.stale = true;
      this.view.sections.refresh();
      this.#tellHits();
      this.view.schedule();
    }

    /** Take a new item into account. */
    take(item) {
      if (item.kind === "call") this.#offer(this.toolSelect, item.name, 1);
      if (!this.filtered && !this.pattern) return;
      item.hit = this.pattern !== null && matches(item, this.pattern);
      if (!this.shows(item)) return;
      item.node.hits = (item.node.hits ?? 0) + 1;
      for (let one = item.node; one; one = one.parent) {
        one.below = (one.below ?? 0) + 1;
        if (one.kind === "task" || one.kind === "agent") {
          one.hits = one.below;
          this.view.sections.touch(one);
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
      this.view.open(item, { focus: !stay });
      item.element?.querySelector("mark")?.scrollIntoView({ block: "center" });
    }

    /** Take all filters off. */
    clear() {
      this.groups.clear();
      for (const chip of this.element.querySelectorAll(".chips [aria-pressed], .chip-hits")) chip.setAttribute("aria-pressed", "false");
      this.agentSelect.value = "";
      this.toolSelect.value = "";
      this.apply();
    }
  };

  function matches(item, pattern) {
    for (const text of textsOf(item)) if (text.search(pattern) >= 0) return true;
    return false;
  }

  /** The texts of an item, for a search. */
  function* textsOf(item) {
    const event = item.event;
    if (item.kind === "call") {
      yield item.name;
      yield PiRun.json(item.arguments);
      yield* blockTexts(item.result?.content);
      if (item.result?.details !== undefined) yield PiRun.json(item.result.details);
      for (const { update } of item.updates) yield PiRun.json(update);
    } else if (item.kind === "message") {
      yield* blockTexts(item.message.content ?? item.blocks);
      if (item.message.error) yield String(item.message.error.message);
    } else if (event) {
      for (const [key, value] of Object.entries(event)) {
        if (!["seq", "t", "type", "agent"].includes(key)) yield PiRun.json(value);
      }
    } else if (item.parting) yield PiRun.json(item.parting);
  }

  function* blockTexts(blocks) {
    for (const block of Array.isArray(blocks) ? blocks : []) {
      if (!PiRun.isObject(block) || block.type === "image") continue;
      if (typeof block.text === "string") yield block.text;
      if (block.type === "tool_call") {
        yield String(block.name);
        yield PiRun.json(block.arguments ?? "");
      }
    }
  }
}
