// An item as an element: a message, a call, or one line for anything else that happened.

{
  const { el, put, icon, oneLine } = PiRun;
  const { isOpen, fold, textOf, section, jsonOf, facts } = PiRun.parts;

  const ROLES = new Map([["user", "User"], ["assistant", "Assistant"], ["tool_result", "Tool result"], ["custom", "Custom"]]);

  /** The class of items that a filter shows or hides together. */
  PiRun.groupOf = (item) => {
    if (item.kind === "call" || item.kind === "unavailable" || item.role === "tool_result") return "tools";
    if (item.kind === "message") return item.role === "assistant" ? "assistant" : "user";
    if (item.kind === "expectation" || item.kind === "task_end") return "checks";
    return "control";
  };

  /** An item's element, built anew. It keeps what was unfolded. */
  PiRun.drawItem = (item, view) => {
    const kind = item.kind === "message" ? `message role-${PiRun.groupOf(item)}` : item.kind;
    const element = el("li", { class: `item item-${kind}${item.error ? " is-error" : ""}`, tabindex: "-1" });
    item.pieces = new Map();
    put(element, ...(item.kind === "message" ? message(item, view) : item.kind === "call" ? call(item, view) : PiRun.line(item, view)));
    element.item = item;
    item.element = element;
    return element;
  };

  /** Show what came since an unfinished item was drawn. */
  PiRun.extendItem = (item, view) => {
    const known = item.kind === "message" && item.blocks.every((_, index) => item.pieces.has(index));
    if (!known || item.folded) return view.redraw(item);
    item.blocks.forEach((block, index) => {
      const piece = item.pieces.get(index);
      const text = block.text;
      if (text.length > piece.shown) piece.element.append(PiRun.visible(text.slice(piece.shown)));
      piece.shown = text.length;
    });
  };

  /** Unfold an item, or fold it. */
  PiRun.toggleItem = (item, view, open = !isOpen(item)) => {
    if (item.kind === "message") item.folded = !open;
    else item.open = open;
    view.redraw(item);
  };

  // --- messages -----------------------------------------------------------------------------------

  function usageText(usage) {
    const all = usage ? PiRun.tokensOf(usage) : 0;
    return all ? `${PiRun.compact(usage.input + usage.cache_read + usage.cache_write)} in, ${PiRun.compact(usage.output)} out` : "";
  }

  function message(item, view) {
    const said = item.message;
    const name = ROLES.get(item.role) ?? oneLine(String(item.role ?? "message"), 40);
    const took = item.asked !== undefined && item.end !== undefined && view.run.timed ? PiRun.duration(item.end - item.asked) : "";
    const head = el(
      "div",
      { class: "row" },
      fold(item, view, el("span", { class: "who" }, name)),
      item.role === "assistant" && el("span", { class: "muted model" }, oneLine(said.model ?? "", 60)),
      !item.ended && el("span", { class: "tag tag-live" }, view.run.end || !view.live ? "broken off" : "writing"),
      item.ended && ["error", "aborted", "length"].includes(said.stop_reason) && el("span", { class: "tag tag-error" }, said.stop_reason),
      said.is_error && el("span", { class: "tag tag-error" }, "error"),
      el("span", { class: "space" }),
      el("span", { class: "muted number" }, [usageText(said.usage), took].filter(Boolean).join(" · ")),
      el("button", { type: "button", class: "quiet", "aria-expanded": String(Boolean(item.about)), "aria-label": `Details of message ${said.id ?? ""}`, on: { click: () => { item.about = !item.about; view.redraw(item); } } }, icon("info")),
    );
    if (item.folded) return [head];
    return [head, el("div", { class: "body" }, item.about && about(item), ...content(item, view), errorOf(said))];
  }

  function errorOf(said) {
    const error = said.error;
    if (!error) return null;
    return el("p", { class: "failure" }, icon("error"), `${error.kind ?? "error"}${error.status ? ` (${error.status})` : ""}: ${error.message ?? ""}`);
  }

  function about(item) {
    const said = item.message;
    const usage = said.usage ?? {};
    const request = item.requests?.at(-1) ?? {};
    const change = request.context_change ?? {};
    return facts([
      ["id", said.id],
      ["provider", said.provider],
      ["model", said.model],
      ["stop reason", said.stop_reason],
      ["input", usage.input],
      ["cache read", usage.cache_read],
      ["cache write", usage.cache_write],
      ["output", usage.output],
      ["reasoning", usage.reasoning],
      ["attempt", request.attempt],
      ["added to the context", (change.added ?? []).join(" ")],
      ["left out of it", (change.dropped ?? []).join(" ")],
      ["context digest", request.context_digest],
      ["system digest", request.system_digest],
      ["tools digest", request.tools_digest],
    ]);
  }

  function content(item, view) {
    const blocks = item.ended ? item.message.content : item.blocks;
    const drawn = [];
    (Array.isArray(blocks) ? blocks : []).forEach((block, index) => {
      if (block && typeof block === "object") drawn.push(drawBlock(item, view, block, index));
    });
    return drawn.filter(Boolean);
  }

  function drawBlock(item, view, block, index) {
    if (block.type === "image") return PiRun.image(block);
    if (block.type === "tool_call") {
      if (item.ended && item.agent.calls.has(block.id)) return null;
      const value = item.ended ? block.arguments : block.text;
      const title = `Calls ${block.name ?? "…"}${item.ended ? ", which was not run" : ""}`;
      return piece(item, index, block, section(title, textOf(item, view, index, PiRun.json(value ?? ""), "code")));
    }
    if (block.type === "thinking") {
      if (block.redacted && !block.text) return el("p", { class: "muted" }, icon("thinking"), "Thinking that the provider shows no text of");
      return piece(item, index, block, thinking(item, view, index, block));
    }
    if (block.type === "text") return piece(item, index, block, textOf(item, view, index, block.text ?? ""));
    return jsonOf(item, view, index, `Block of type ${oneLine(String(block.type), 40)}`, block.data ?? block);
  }

  /** Keep where a block's text stands, so that it can grow. */
  function piece(item, index, block, element) {
    if (!item.ended) {
      const text = element.classList.contains("text") ? element : element.querySelector(".text");
      if (text && !element.querySelector(".more")) item.pieces.set(index, { element: text, shown: String(block.text).length });
    }
    return element;
  }

  function thinking(item, view, index, block) {
    const text = String(block.text ?? "");
    const hit = view.pattern ? text.search(view.pattern) >= 0 : false;
    const open = item.thought?.get(index) ?? (!item.ended || view.printing || hit);
    const flip = () => {
      item.thought ??= new Map();
      item.thought.set(index, !open);
      view.redraw(item);
    };
    return el(
      "div",
      { class: "thinking" },
      el(
        "button",
        { type: "button", class: "fold", "aria-expanded": String(open), on: { click: flip } },
        icon("chevron"),
        el("span", { class: "who" }, "Thinking"),
        !open && el("span", { class: "muted ellipsis" }, oneLine(text, 140)),
      ),
      open && textOf(item, view, index, text),
    );
  }

  // --- calls --------------------------------------------------------------------------------------

  function resultText(call) {
    const blocks = call.result?.content;
    return (Array.isArray(blocks) ? blocks : []).map((block) => (block?.type === "image" ? "[image]" : (block?.text ?? ""))).join("");
  }

  function argumentsText(value) {
    if (typeof value === "string") return oneLine(value, 240);
    if (!value || typeof value !== "object") return "";
    return oneLine(
      Object.entries(value).map(([key, one]) => `${key}: ${typeof one === "string" ? one : JSON.stringify(one)}`).join(", "),
      240,
    );
  }

  function took(call, view) {
    if (!call.ended) return view.run.end || !view.live ? "no end" : "running";
    if (typeof call.seconds === "number") return PiRun.duration(call.seconds);
    return view.run.timed ? PiRun.duration(call.end - call.at) : "";
  }

  function call(item, view) {
    const state = !item.ended ? "running" : item.error ? "error" : "ok";
    const preview = item.ended ? oneLine(resultText(item), 240) : item.updates.length ? oneLine(PiRun.json(item.updates.at(-1).update), 240) : "";
    const head = el(
      "div",
      { class: "row" },
      fold(item, view, icon(state === "ok" ? "tool" : state), el("span", { class: "name" }, oneLine(item.name, 80)), state !== "ok" && el("span", { class: "sr" }, state === "error" ? "failed" : "has not ended"), el("span", { class: "muted mono ellipsis" }, argumentsText(item.arguments))),
      ...item.hooks.map((hook) => el("span", { class: "tag tag-hook" }, `${hook.action}`)),
      item.stopped && el("span", { class: "tag tag-error" }, "stopped"),
      el("span", { class: "muted number" }, took(item, view)),
    );
    if (!isOpen(item, view)) return [head, preview && el("div", { class: "preview mono ellipsis" }, preview)];
    return [head, el("div", { class: "body" }, ...callBody(item, view))];
  }

  function callBody(item, view) {
    const result = item.result;
    const rewritten = item.hooks.filter((hook) => hook.arguments);
    return [
      jsonOf(item, view, "arguments", "Arguments", item.arguments),
      ...rewritten.map((hook, index) => jsonOf(item, view, `rewritten ${index}`, `Arguments after ${hook.hook}`, hook.arguments)),
      ...item.updates.slice(-20).map(({ update }, index) => jsonOf(item, view, `update ${index}`, "Progress", update)),
      result && section(item.error ? "Error" : "Result", ...resultBlocks(item, view)),
      result?.details !== undefined && jsonOf(item, view, "details", "Details", result.details),
      facts([
        ["call", item.id],
        ["message", item.messageId],
        ["started at", view.run.timed ? PiRun.duration(item.at - view.run.from) : undefined],
        ["stopped", item.stopped],
        ["terminates", item.terminate ? "yes" : undefined],
      ]),
    ];
  }

  function resultBlocks(item, view) {
    const blocks = Array.isArray(item.result.content) ? item.result.content : [];
    if (!blocks.length) return [el("p", { class: "muted" }, "Nothing")];
    return blocks.map((block, index) => {
      if (block?.type === "image") return PiRun.image(block);
      if (typeof block?.text === "string") return textOf(item, view, `result ${index}`, block.text, "code");
      return textOf(item, view, `result ${index}`, PiRun.json(block), "code");
    });
  }
}
