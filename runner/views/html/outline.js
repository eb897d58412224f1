// The run's outline: tasks, agents and turns as a tree, of which only the rows in sight are built.

{
  const { el, icon, oneLine } = PiRun;
  const ROW = 28;

  PiRun.Outline = class Outline {
    constructor(view) {
      this.view = view;
      this.rows = [];
      this.current = null;
      this.space = el("div", { class: "outline-space", role: "presentation" });
      this.tree = el("div", { class: "outline-tree", role: "tree", tabindex: "0", "aria-label": "Tasks and turns" }, this.space);
      this.element = el("nav", { class: "outline", "aria-label": "Outline" }, this.tree);
      this.tree.addEventListener("scroll", () => view.schedule());
      this.tree.addEventListener("click", (event) => this.#click(event));
      this.tree.addEventListener("keydown", (event) => this.#key(event));
      new ResizeObserver(() => view.schedule()).observe(this.tree);
      this.stale = true;
    }

    draw() {
      if (this.stale) this.#list();
      const first = Math.max(0, Math.floor(this.tree.scrollTop / ROW) - 4);
      const last = Math.min(this.rows.length, first + Math.ceil((this.tree.clientHeight || 400) / ROW) + 8);
      this.space.style.height = `${this.rows.length * ROW}px`;
      this.space.replaceChildren(...this.rows.slice(first, last).map((node, index) => this.#row(node, first + index)));
      const shown = this.rows.indexOf(this.current);
      if (shown >= first && shown < last) this.tree.setAttribute("aria-activedescendant", `row-${shown}`);
      else this.tree.removeAttribute("aria-activedescendant");
    }

    /** Tell which node is in sight in the list. */
    point(node) {
      while (node && node.kind === "between") node = node.parent;
      if (!node || node === this.current) return;
      this.current = node;
      if (this.stale) this.#list();
      this.#reveal();
      this.view.schedule();
    }

    #reveal() {
      const top = this.rows.indexOf(this.current) * ROW;
      if (top < 0) return;
      if (top < this.tree.scrollTop + ROW) this.tree.scrollTop = Math.max(0, top - 2 * ROW);
      else if (top + 2 * ROW > this.tree.scrollTop + this.tree.clientHeight) this.tree.scrollTop = top + 3 * ROW - this.tree.clientHeight;
    }

    #list() {
      this.stale = false;
      this.rows = [];
      const walk = (node) => {
        for (const child of node.children) {
          if (child.kind === "between") continue;
          if (this.view.find.filtered && !(child.below > 0)) continue;
          this.rows.push(child);
          if (!child.folded) walk(child);
        }
      };
      walk(this.view.run.root);
    }

    #row(node, index) {
      const state = PiRun.stateOf(node, this.view.run);
      const folds = node.children.some((child) => child.kind !== "between");
      const took = node.ended && this.view.run.timed ? PiRun.duration(node.until - node.at) : "";
      const name = node.kind === "agent" ? node.path.slice(node.path.lastIndexOf("/") + 1) : node.kind === "task" ? `${node.id}${node.iteration > 1 || node.item !== undefined ? ` #${node.iteration}` : ""}` : PiRun.nameOf(node);
      const row = el(
        "div",
        { class: `outline-row outline-${node.kind}${node === this.current ? " is-current" : ""}`, id: `row-${index}`, role: "treeitem", "aria-level": String(levelOf(node)), "aria-selected": String(node === this.current), "aria-expanded": folds ? String(!node.folded) : undefined },
        folds ? icon("chevron") : el("span", { class: "no-icon" }),
        icon(state),
        el("span", { class: "ellipsis" }, oneLine(name, 60)),
        el("span", { class: "space" }),
        el("span", { class: "muted number" }, this.view.find.filtered ? `${node.below}` : took),
      );
      row.style.top = `${index * ROW}px`;
      row.style.paddingInlineStart = `${4 + (levelOf(node) - 1) * 14}px`;
      row.node = node;
      return row;
    }

    #click(event) {
      const node = event.target.closest(".outline-row")?.node;
      if (!node) return;
      if (event.target.closest(".icon-chevron")) return this.#fold(node, Boolean(node.folded));
      this.current = node;
      this.view.open(node);
      document.body.classList.remove("shows-outline");
    }

    #fold(node, open) {
      this.view.sections.toggle(node, open);
      this.stale = true;
      this.view.schedule();
    }

    #key(event) {
      const at = this.rows.indexOf(this.current);
      const node = this.rows[at];
      const page = Math.max(1, Math.floor(this.tree.clientHeight / ROW) - 1);
      const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in moves) {
        const to = Math.min(Math.max(at < 0 ? 0 : at + moves[event.key], 0), this.rows.length - 1);
        this.current = this.rows[to] ?? null;
        this.#reveal();
      } else if (event.key === "ArrowRight" && node?.folded) this.#fold(node, true);
      else if (event.key === "ArrowLeft" && node) {
        if (!node.folded && node.children.length && node.kind !== "turn") this.#fold(node, false);
        else if (node.parent?.parent) this.current = node.parent;
      } else if ((event.key === "Enter" || event.key === " ") && node) this.view.open(node);
      else return;
      event.preventDefault();
      event.stopPropagation();
      this.view.schedule();
    }
  };

  function levelOf(node) {
    let level = 0;
    for (let one = node; one?.parent; one = one.parent) level += 1;
    return level;
  }
}
