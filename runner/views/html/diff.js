// Two logs side by side: their figures, both in time to one scale, and what differs, by turn.

{
  const { el, put, icon, oneLine, plural } = PiRun;
  const SHOWN = 60;
  const KEYS = [
    ["j  k", "next and previous difference"],
    ["Enter", "fold, or unfold"],
    ["t", "dark or light"],
    ["?", "these keys"],
  ];

  /**
   * Show how two runs differ. `a` and `b` are {name, events}; `differences` is a list of
   * {turn, agent?, path, a?, b?}, as of `pi-run diff --format json`.
   */
  PiRun.diff = (root, { a, b, differences }) => {
    const sides = [side(a, "A"), side(b, "B")];
    const scale = Math.max(...sides.map(({ run }) => run.until - (run.from ?? 0)));
    for (const one of sides) one.view.timeline.shared = scale;
    const same = differences.length === 0;
    root.classList.add("pi-run", "diff-page");
    const status = el("span", { class: `status status-${same ? "ok" : "error"}` }, icon(same ? "ok" : "error"), same ? "same" : plural(differences.length, "difference"));
    put(
      root,
      el("header", { class: "top" }, el("div", { class: "top-row" }, el("div", { class: "title" }, status, el("h1", {}, "Two logs compared")), el("span", { class: "space" }), PiRun.pageTools(KEYS))),
      el(
        "main",
        { id: "main" },
        el("div", { class: "panels" }, figures(sides), ...sides.map((one) => one.view.timeline.element)),
        same ? el("p", { class: "nothing" }, "They are the same, but for what differs from run to run.") : groups(differences, sides),
      ),
    );
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
      if (event.key === "t") PiRun.flipTheme();
      else if (event.key === "?") PiRun.showKeys(KEYS);
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    });
    for (const one of sides) one.view.schedule();
  };

  function step(by) {
    const heads = [...document.querySelectorAll(".change > .fold, .group > .heading button")];
    const at = heads.indexOf(document.activeElement);
    const next = heads[Math.min(Math.max(at + by, 0), heads.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  /** One of the two runs: its events taken in, its figures, and a view that only has a timeline. */
  function side({ name, events }, letter) {
    const run = new PiRun.Run();
    for (const event of events) run.add(event);
    run.finish();
    const view = { run, live: false, printing: false, pattern: null, frame: 0, redraw: (item) => redraw(item, view), open: () => {} };
    view.timeline = new PiRun.Timeline(view, { label: `${letter}: ${oneLine(run.start?.spec?.name ?? name, 60)}` });
    view.schedule = () => {
      view.frame ||= requestAnimationFrame(() => {
        view.frame = 0;
        view.timeline.draw();
      });
    };
    addEventListener("beforeprint", () => {
      view.printing = true;
      view.timeline.draw();
    });
    addEventListener("afterprint", () => {
      view.printing = false;
    });
    return { run, view, name, letter };
  }

  /** What the two runs came to, in a table. */
  function figures(sides) {
    const rows = sides.map(({ run, name }) => {
      const end = run.end ?? {};
      const usage = end.usage ?? run.usage;
      return {
        Log: name,
        Spec: run.start?.spec?.name ?? "",
        Status: end.status ?? "no end",
        "Exit code": end.exit_code ?? "",
        Turns: PiRun.number(end.turns ?? run.turns.length),
        "Tool calls": PiRun.number(end.tool_calls ?? run.calls),
        Tokens: PiRun.number(PiRun.tokensOf(usage)),
        Cost: typeof end.cost_usd === "number" ? PiRun.dollars(end.cost_usd) : "",
        Duration: typeof end.seconds === "number" ? PiRun.duration(end.seconds) : "",
      };
    });
    const names = Object.keys(rows[0]);
    const differs = (name) => !["Log", "Duration"].includes(name) && rows[0][name] !== rows[1][name];
    return el(
      "div",
      { class: "panel table", tabindex: "0", role: "region", "aria-label": "Both runs" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, el("td", {}), ...names.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, ...rows.map((row, index) => el("tr", {}, el("th", { scope: "row" }, letterOf(sides[index])), ...names.map((name) => el("td", { class: differs(name) ? "differs" : "" }, oneLine(String(row[name]), 120)))))),
      ),
    );
  }

  const letterOf = ({ letter }) => el("span", { class: `letter letter-${letter.toLowerCase()}` }, letter);

  function redraw(item, view) {
    item.element?.replaceWith(PiRun.drawItem(item, view));
  }

  function groups(differences, sides) {
    const all = new Map();
    for (const one of differences) {
      const key = JSON.stringify([one.turn, one.agent ?? null]);
      if (!all.has(key)) all.set(key, []);
      all.get(key).push(one);
    }
    return el("div", { class: "diffs" }, ...[...all.values()].map((group) => drawGroup(group, sides)));
  }

  function drawGroup(group, sides) {
    const { turn, agent } = group[0];
    const name = (turn ? `Turn ${turn}` : "Before the first turn") + (agent ? ` of ${oneLine(agent, 80)}` : "");
    const element = el("section", { class: "group panel" });
    const list = el("div", { class: "changes" });
    const both = el("div", { class: "pair both", hidden: true });
    const nodes = sides.map(({ run }) => run.turns.find((node) => node.turn === turn && node.agent.path === (agent ?? "main")));
    const flip = () => {
      both.hidden = !both.hidden;
      button.setAttribute("aria-expanded", String(!both.hidden));
      if (!both.childElementCount) put(both, ...sides.map((one, index) => whole(one, nodes[index])));
    };
    const button = el("button", { type: "button", class: "chip", "aria-expanded": "false", on: { click: flip } }, "The turn in both");
    put(element, el("div", { class: "heading" }, el("h2", {}, name), el("span", { class: "muted number" }, plural(group.length, "difference")), el("span", { class: "space" }), nodes.some(Boolean) && button), list, both);
    let shown = 0;
    const more = el("button", { type: "button", class: "more", on: { click: () => show() } }, "");
    const show = () => {
      put(list, ...group.slice(shown, shown + SHOWN).map(change));
      shown += SHOWN;
      more.hidden = shown >= group.length;
      more.textContent = `Show more of ${plural(group.length, "difference")}`;
    };
    show();
    element.append(more);
    return element;
  }

  function whole(one, node) {
    const title = el("div", { class: "part-title" }, letterOf(one));
    if (!node) return el("div", {}, title, el("p", { class: "muted" }, "It has no such turn."));
    return el("div", {}, title, el("ol", { class: "items" }, ...node.items.map((item) => PiRun.drawItem(item, one.view))));
  }

  function change(one) {
    const element = el("div", { class: "change" });
    const content = PiRun.compared(one);
    const flip = () => {
      content.hidden = !content.hidden;
      button.setAttribute("aria-expanded", String(!content.hidden));
    };
    const alone = !("a" in one) ? "only in B" : !("b" in one) ? "only in A" : "";
    const button = el("button", { type: "button", class: "fold", "aria-expanded": "true", on: { click: flip } }, icon("chevron"), el("span", { class: "mono ellipsis" }, oneLine(one.path, 300)), alone && el("span", { class: "tag" }, alone));
    return put(element, button, content);
  }
}
