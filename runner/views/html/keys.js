// The keyboard, and the theme.

{
  const { el } = PiRun;

  const KEYS = [
    ["j  k", "next and previous message or call"],
    ["]  [", "next and previous turn"],
    ["Enter", "unfold, or fold"],
    ["/", "search; Enter and Shift+Enter go through the hits"],
    ["n  N", "next and previous hit"],
    ["e  E", "next and previous failure"],
    ["a", "unfold everything, or fold it"],
    ["g  G", "first and last"],
    ["o", "to the outline"],
    ["l", "to the timeline: arrows, + − 0, Enter"],
    ["t", "dark or light"],
    ["?", "these keys"],
  ];

  PiRun.flipTheme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep(root.dataset.theme);
  };

  /** Take up the theme that was chosen before. */
  PiRun.takeTheme = () => {
    const theme = kept();
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  };

  // A browser may keep nothing for a page from a file.
  function keep(theme) {
    try {
      localStorage.setItem("pi-run-theme", theme);
    } catch {
      return;
    }
  }

  function kept() {
    try {
      return localStorage.getItem("pi-run-theme");
    } catch {
      return null;
    }
  }

  /** Tell the keys of a page, each with what it does. */
  PiRun.showKeys = (keys = KEYS) => {
    let dialog = document.getElementById("keys");
    if (!dialog) {
      dialog = el("dialog", { id: "keys", "aria-label": "Keys" }, el("h2", {}, "Keys"), el("dl", { class: "keys" }, ...keys.flatMap(([key, what]) => [el("dt", {}, ...key.split("  ").map((one) => el("kbd", {}, one))), el("dd", {}, what)])), el("form", { method: "dialog" }, el("button", { class: "small" }, "Close")));
      document.body.append(dialog);
    }
    if (!dialog.open) dialog.showModal();
  };

  /** Let a view be led by the keyboard. */
  PiRun.keys = (view) => {
    const acts = {
      j: () => step(view, 1),
      k: () => step(view, -1),
      "]": () => turn(view, 1),
      "[": () => turn(view, -1),
      "/": () => view.find.search.focus(),
      n: () => view.find.hit(1),
      N: () => view.find.hit(-1),
      e: () => step(view, 1, (item) => item.error),
      E: () => step(view, -1, (item) => item.error),
      a: () => view.unfold(!view.unfolded),
      g: () => edge(view, 0),
      G: () => edge(view, -1),
      o: () => view.outline.tree.focus(),
      l: () => view.timeline.body.focus(),
      t: PiRun.flipTheme,
      "?": () => PiRun.showKeys(),
    };
    document.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, textarea, select, dialog")) return;
      const item = event.target.closest(".item")?.item;
      if (event.key === "Enter" && item && event.target === item.element) {
        event.preventDefault();
        PiRun.toggleItem(item, view);
        item.element?.focus({ preventScroll: true });
        return;
      }
      const act = Object.hasOwn(acts, event.key) ? acts[event.key] : null;
      if (!act) return;
      event.preventDefault();
      act();
    });
  };

  function shown(view, wanted = () => true) {
    const items = [];
    for (const node of PiRun.walk(view.run.root)) {
      if (PiRun.isFolded(node)) continue;
      for (const item of node.items) if (view.find.shows(item) && wanted(item)) items.push(item);
    }
    return items;
  }

  function current(view) {
    const element = document.activeElement?.closest?.(".item, .section");
    if (element?.item) return element.item;
    if (element?.node) return element.node;
    return view.outline.current;
  }

  /** Go to the next item, from the one that has the focus, or from what is in sight. */
  function step(view, by, wanted) {
    const all = shown(view);
    const items = wanted ? all.filter(wanted) : all;
    if (!items.length) return;
    const now = current(view);
    const order = new Map(all.map((item, index) => [item, index]));
    let place = order.get(now);
    if (place === undefined) {
      const first = now ? all.findIndex((item) => item.node === now) : -1;
      place = first < 0 ? -1 : first - (by > 0 ? 1 : 0);
    }
    const next = by > 0 ? items.find((item) => order.get(item) > place) : items.findLast((item) => order.get(item) < place);
    view.open(next ?? (by > 0 ? items.at(-1) : items[0]));
  }

  function turn(view, by) {
    const turns = [...PiRun.walk(view.run.root)].filter((node) => node.kind === "turn" && node.element && !node.element.hidden);
    if (!turns.length) return;
    const now = current(view);
    const at = turns.indexOf(now?.node ?? now);
    view.open(turns[Math.min(Math.max(at + by, 0), turns.length - 1)]);
  }

  function edge(view, at) {
    view.open(shown(view).at(at));
  }
}
