// What items are built of: what unfolds them, texts that are cut until they are wanted, and facts.

{
  const { el, icon, plural } = PiRun;
  const FEW_LINES = 24;
  const FEW_CHARACTERS = 2400;

  function isOpen(item, view) {
    if (item.kind === "message") return !item.folded;
    return item.open ?? Boolean(view?.printing && item.error);
  }

  function fold(item, view, ...children) {
    return el(
      "button",
      { type: "button", class: "fold", "aria-expanded": String(isOpen(item, view)), on: { click: () => PiRun.toggleItem(item, view) } },
      icon("chevron"),
      ...children,
    );
  }

  function isLong(text) {
    if (text.length > FEW_CHARACTERS) return true;
    let lines = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) if (++lines >= FEW_LINES) return true;
    return false;
  }

  function beginning(text) {
    const lines = PiRun.cut(text, FEW_CHARACTERS).split("\n", FEW_LINES);
    return lines.join("\n");
  }

  /** A text, of a long one its beginning with a button for the rest. */
  function textOf(item, view, key, text, kind = "prose") {
    const value = String(text);
    const open = item.full?.has(key) || view.printing || !isLong(value);
    const shown = el("div", { class: `text ${kind}`, dir: "auto" });
    PiRun.fill(shown, open ? value : beginning(value), view.pattern);
    if (!isLong(value) || view.printing) return shown;
    const flip = () => {
      item.full ??= new Set();
      if (!item.full.delete(key)) item.full.add(key);
      view.redraw(item);
    };
    const name = open ? "Show less" : `Show all ${plural(value.length, "character")}`;
    return el("div", { class: open ? "" : "clamped" }, shown, el("button", { type: "button", class: "more", on: { click: flip } }, name));
  }

  function section(title, ...children) {
    return el("div", { class: "part" }, el("div", { class: "part-title" }, title), ...children);
  }

  function jsonOf(item, view, key, title, value) {
    return section(title, textOf(item, view, key, PiRun.json(value), "code"));
  }

  function facts(entries) {
    const kept = entries.filter(([, value]) => value !== undefined && value !== null && value !== "");
    return el("dl", { class: "facts" }, ...kept.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
  }

  PiRun.parts = { isOpen, fold, textOf, section, jsonOf, facts };
}
