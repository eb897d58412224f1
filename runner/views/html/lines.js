// An item that is neither a message nor a call, as one line: hooks, retries, queues, limits, checks.

{
  const { el, icon, oneLine } = PiRun;
  const { isOpen, fold, textOf, section, jsonOf } = PiRun.parts;

  const NAMES = ["recorded", "new"];

  const LINES = {
    hook: (e) => ["hook", "Hook", `${e.hook}: ${e.action}${e.on_error ? ` (${e.on_error})` : ""}${e.stop ? ", and stop" : ""}`, e.reason, e.arguments],
    retry: (e) => ["retry", "Retry", `after attempt ${e.attempt}, ${e.delay ? `in at most ${PiRun.duration(e.delay)}` : "at once"}${e.fallback ? `, with ${e.fallback}` : ""}`, e.error],
    limit: (e) => ["error", "Limit", `${e.limit} reached`, `${e.value} of ${e.allowed ?? "none"}`],
    unavailable: (e) => ["error", "Tool", `${e.tool} is not available`, e.reason],
    resume: (e) => ["resume", "Resumed", `after line ${e.at_seq}`, `it had ended: ${e.reason}`, { kept: e.kept, rerun: e.rerun, unknown: e.unknown, not_started: e.not_started }],
    expectation: (e) => [e.passed ? "ok" : "error", "Expected", `${e.kind}: ${e.passed ? "met" : "not met"}`, e.detail],
    task_end: (e) => [e.skipped ? "skip" : e.status === "ok" ? "ok" : "error", "Task", `${e.task_id}: ${e.status}`, e.skipped ?? e.warning, e.output],
    other: (e) => ["info", "Event", String(e.type), "", e],
  };

  function queued(item) {
    const { event, left } = item;
    const blocks = event.message?.content;
    const text = Array.isArray(blocks) ? blocks.map((block) => block?.text ?? "").join("") : (event.message?.text ?? "");
    return ["queued", left ? "Left in queue" : "Queued", `${event.queue}${left ? "" : `, by ${event.source}`}`, text];
  }

  PiRun.line = (item, view) => {
    if (item.kind === "parting") return parting(item);
    const [sign, name, what, detail, value] = item.kind === "queued" ? queued(item) : LINES[item.kind](item.event);
    const text = String(detail ?? "");
    const given = value !== undefined && value !== null;
    const short = oneLine(text || (given ? JSON.stringify(value) : ""), 200);
    const open = isOpen(item, view);
    const words = [icon(sign), el("span", { class: "who" }, name), el("span", { class: "what" }, oneLine(what, 200)), !open && el("span", { class: "muted ellipsis" }, short)];
    if (!given && text.length <= 160 && !text.includes("\n")) return [el("div", { class: "row plain" }, ...words)];
    const head = el("div", { class: "row" }, fold(item, view, ...words));
    if (!open) return [head];
    const title = { task_end: "Output", hook: "New arguments" }[item.kind] ?? "Data";
    return [head, el("div", { class: "body" }, text && textOf(item, view, "text", text), given && jsonOf(item, view, "value", title, value))];
  };

  /** Where a replay parted from the log. */
  function parting(item) {
    const found = item.parting;
    const place = `${found.type ?? ""}${found.path ? `.${found.path}` : ""}`;
    const prompts = found.prompts ? { a: found.prompts[0], b: found.prompts[1] } : null;
    return [
      el("div", { class: "row plain" }, icon("parting"), el("span", { class: "who" }, "A replay parted here"), el("span", { class: "mono ellipsis" }, oneLine(place, 200))),
      el(
        "div",
        { class: "body" },
        found.cause && el("p", {}, "Likely cause: ", String(found.cause)),
        section("Recorded (−) and new (+)", PiRun.compared(sides(found), NAMES)),
        prompts && section("System prompt, recorded (−) and new (+)", PiRun.compared(prompts, NAMES)),
      ),
    ];
  }

  /** What was recorded and what came instead; one that was not there at all is left out. */
  function sides({ recorded, new: instead }) {
    const told = {};
    if (recorded !== null) told.a = recorded;
    if (instead !== null) told.b = instead;
    return told;
  }
}
