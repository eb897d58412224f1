// What is told of the run as a whole: its name, status and figures, what it came to, what it was given.

{
  const { el, put, icon, oneLine, plural } = PiRun;

  PiRun.Head = class Head {
    constructor(view, tools) {
      this.view = view;
      this.title = el("div", { class: "title" });
      this.figures = el("dl", { class: "figures" });
      this.notices = el("div", { class: "notices", role: "status" });
      this.summary = el("section", { class: "panel summary", "aria-label": "Summary" });
      this.element = el("header", { class: "top" }, el("div", { class: "top-row" }, this.title, el("span", { class: "space" }), tools), this.figures);
      this.folds = new Map();
    }

    notice(text, kind = "info") {
      this.notices.append(el("p", { class: `notice notice-${kind}` }, icon(kind === "info" ? "info" : "error"), text));
    }

    draw() {
      const { run } = this.view;
      const start = run.start ?? {};
      const { end } = run;
      const name = oneLine(start.spec?.name ?? this.view.name ?? "run", 80);
      const status = end ? oneLine(String(end.status), 20) : this.view.live ? (run.count ? "running" : "waiting") : "no end";
      const kind = status === "ok" ? "ok" : ["running", "waiting"].includes(status) ? "running" : "error";
      this.title.replaceChildren(el("span", { class: `status status-${kind}` }, icon(kind), status), el("h1", {}, name));
      if (start.plan?.description) this.title.append(el("span", { class: "muted ellipsis" }, oneLine(start.plan.description, 120)));
      if (this.view.live) document.title = PiRun.visible(`${kind === "running" ? "●" : kind === "ok" ? "✓" : "✕"} ${name}`);
      this.#figures(start, end, run);
      this.#summary(start, end, run);
    }

    #figures(start, end, run) {
      const usage = end?.usage ?? run.usage;
      const seconds = end?.seconds ?? (run.timed && run.count ? run.until - run.from : undefined);
      const turns = end?.turns ?? run.turns.length;
      const calls = end?.tool_calls ?? run.calls;
      const cost = end ? end.cost_usd : run.cost;
      const model = start.plan?.model ?? {};
      const entries = [
        ["Duration", typeof seconds === "number" ? PiRun.duration(seconds) : null],
        ["Turns", PiRun.number(turns)],
        ["Tool calls", PiRun.number(calls)],
        ["Tokens", PiRun.tokensOf(usage) ? PiRun.compact(PiRun.tokensOf(usage)) : null, PiRun.tokensOf(usage) ? `${PiRun.number(usage.input)} input, ${PiRun.number(usage.cache_read)} from cache, ${PiRun.number(usage.cache_write)} into it, ${PiRun.number(usage.output)} output, ${PiRun.number(usage.reasoning)} of it reasoning` : ""],
        ["Cost", typeof cost === "number" && cost > 0 ? PiRun.dollars(cost) : null],
        ["Exit code", end ? String(end.exit_code) : null],
        ["Model", [model.provider, model.id].filter(Boolean).map((part) => oneLine(String(part), 40)).join("/") || null],
        ["Started", start.started_at ? dateOf(start.started_at) : null, start.started_at],
        ["Run", start.run_id ? oneLine(String(start.run_id), 30) : null, `pi-run ${start.runner_version ?? ""}`],
      ];
      this.figures.replaceChildren(
        ...entries.filter(([, value]) => value !== null).map(([key, value, title]) => el("div", { title: title || undefined }, el("dt", {}, key), el("dd", {}, value))),
      );
    }

    #summary(start, end, run) {
      const { pattern, printing } = this.view;
      const parts = [];
      if (end?.error) parts.push(el("p", { class: "failure" }, icon("error"), String(end.error)));
      if (run.parted) parts.push(el("p", { class: "failure" }, icon("parting"), el("button", { type: "button", class: "link", on: { click: () => this.view.open(run.parted) } }, "A replay parted from this log"), ` in turn ${run.parting.turn}: ${run.parting.cause ?? ""}`));
      if (run.over && !end) parts.push(el("p", { class: "failure" }, icon("stopped"), "The log breaks off: the run was killed, or is still under way."));
      if (start.forked_from) parts.push(el("p", { class: "muted" }, `Forked from run ${start.forked_from.run_id} at turn ${start.forked_from.turn}`));
      if (end?.text) parts.push(this.#fold("result", "Result", true, () => PiRun.fill(el("div", { class: "text prose", dir: "auto" }), end.text, pattern), oneLine(end.text, 120)));
      if (end && end.output !== null && end.output !== undefined) parts.push(this.#json("output", "Output", end.output));
      if (run.expectations.length) parts.push(this.#expectations(run));
      const inputs = start.inputs ?? {};
      if (Object.keys(inputs).length) parts.push(this.#json("inputs", plural(Object.keys(inputs).length, "input"), inputs));
      const prompt = start.plan?.system_prompt;
      if (prompt) parts.push(this.#fold("system", "System prompt", false, () => PiRun.fill(el("div", { class: "text prose", dir: "auto" }), prompt, pattern), oneLine(prompt, 120)));
      if (start.plan && !printing) parts.push(this.#json("plan", "Plan", start.plan, "the spec as it was resolved"));
      if (end?.redactions) parts.push(el("p", { class: "muted" }, `${plural(end.redactions, "value")} taken out of the log`));
      this.summary.replaceChildren(...parts);
      this.summary.hidden = !parts.length;
    }

    #json(key, title, value, hint) {
      return this.#fold(key, title, false, () => PiRun.fill(el("div", { class: "text code" }), PiRun.json(value), this.view.pattern), hint ?? oneLine(JSON.stringify(value), 120));
    }

    #fold(key, title, openAtFirst, content, hint) {
      const open = this.folds.get(key) ?? (openAtFirst || (this.view.printing && key !== "plan"));
      const flip = () => {
        this.folds.set(key, !open);
        this.draw();
        this.summary.querySelector(`[data-key="${key}"]`)?.focus();
      };
      return el(
        "div",
        { class: "fact" },
        el("button", { type: "button", class: "fold", "data-key": key, "aria-expanded": String(open), on: { click: flip } }, icon("chevron"), el("span", { class: "who" }, title), !open && el("span", { class: "muted ellipsis" }, hint)),
        open && content(),
      );
    }

    #expectations(run) {
      const failed = run.expectations.filter((item) => item.error);
      const title = failed.length ? `${failed.length} of ${plural(run.expectations.length, "expectation")} not met` : `${plural(run.expectations.length, "expectation")} met`;
      const all = [...failed, ...run.expectations.filter((item) => !item.error)].slice(0, 200);
      const list = () => put(el("ul", { class: "checks" }), ...all.map((item) => el("li", {}, icon(item.error ? "error" : "ok"), el("span", { class: "what" }, oneLine(item.event.kind, 60)), el("span", { class: "muted" }, oneLine(item.event.detail, 400)))));
      const fact = this.#fold("expectations", title, failed.length > 0, list, failed.length ? "" : "");
      fact.querySelector(".who").before(icon(failed.length ? "error" : "ok"));
      return fact;
    }
  };

  function dateOf(text) {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? oneLine(String(text), 40) : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }
}
