// Tokens and cost by turn, as columns. Of more turns than there is room for, several are one column.

{
  const { el } = PiRun;
  const MOST = 160;
  const PARTS = [
    ["cache", "read from cache", (usage) => usage.cache_read],
    ["input", "input", (usage) => usage.input + usage.cache_write],
    ["output", "output", (usage) => usage.output],
  ];

  PiRun.Chart = class Chart {
    constructor(view) {
      this.view = view;
      const legend = el("div", { class: "tl-legend", "aria-hidden": "true" }, ...PARTS.map(([kind, name]) => el("span", {}, el("i", { class: `swatch col-${kind}` }), name)));
      this.tokens = el("div", { class: "columns", role: "img" });
      this.money = el("div", { class: "columns", role: "img" });
      this.most = el("span", { class: "muted number" });
      this.dearest = el("span", { class: "muted number" });
      this.cost = el("div", { class: "chart" }, el("div", { class: "panel-head" }, el("h2", {}, "Cost by turn"), el("span", { class: "space" }), this.dearest), this.money);
      this.element = el(
        "section",
        { class: "panel charts", hidden: true, "aria-label": "Tokens and cost by turn" },
        el("div", { class: "chart" }, el("div", { class: "panel-head" }, el("h2", {}, "Tokens by turn"), legend, el("span", { class: "space" }), this.most), this.tokens),
        this.cost,
      );
      this.element.addEventListener("click", (event) => {
        const turn = event.target.closest(".column")?.turn;
        if (turn) view.open(turn);
      });
    }

    draw() {
      const turns = this.view.run.turns;
      const size = Math.ceil(turns.length / MOST);
      const groups = [];
      for (let at = 0; at < turns.length; at += size) groups.push(turns.slice(at, at + size));
      const tokens = groups.map((group) => PARTS.map(([, , of]) => sum(group, (turn) => of(turn.usage))));
      const costs = groups.map((group) => sum(group, (turn) => turn.cost ?? 0));
      const most = Math.max(0, ...tokens.map((parts) => parts.reduce((a, b) => a + b, 0)));
      const dearest = Math.max(0, ...costs);
      this.element.hidden = !most;
      this.cost.hidden = !dearest;
      if (!most) return;
      this.tokens.replaceChildren(...groups.map((group, at) => column(group, PARTS.map(([kind, name], part) => [kind, name, tokens[at][part], PiRun.number]), most)));
      this.money.replaceChildren(...groups.map((group, at) => column(group, [["cost", "", costs[at], PiRun.dollars]], dearest)));
      const unit = size > 1 ? `in ${size} turns` : "a turn";
      this.most.textContent = `at most ${PiRun.compact(most)} ${unit}`;
      this.dearest.textContent = `at most ${PiRun.dollars(dearest)} ${unit}`;
      this.tokens.setAttribute("aria-label", `Tokens by turn, ${PiRun.plural(turns.length, "turn")}, at most ${PiRun.number(most)} ${unit}`);
      this.money.setAttribute("aria-label", `Cost by turn, at most ${PiRun.dollars(dearest)} ${unit}`);
    }
  };

  const sum = (group, of) => group.reduce((total, turn) => total + of(turn), 0);

  function column(group, parts, most) {
    const first = PiRun.nameOf(group[0]);
    const name = group.length > 1 ? `${first} to ${group.at(-1).turn}` : first;
    const agent = group[0].agent.path === "main" ? "" : ` of ${group[0].agent.path}`;
    const told = parts.filter(([, , value]) => value).map(([, what, value, show]) => `${show(value)} ${what}`.trim());
    const bars = parts.map(([kind, , value]) => {
      const bar = el("i", { class: `col-${kind}` });
      bar.style.height = `${((100 * value) / (most || 1)).toFixed(2)}%`;
      return bar;
    });
    const element = el("span", { class: "column", title: `${name}${agent}: ${told.join(", ") || "nothing"}` }, ...bars.reverse());
    element.turn = group[0];
    return element;
  }
}
