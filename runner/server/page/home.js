// The specs, each with a form that starts a run of it, and the runs.
"use strict";

{
  const { el } = PiRun;
  const EVERY = 2000;

  // --- specs ------------------------------------------------------------------------------------

  /** A field for an input, by its JSON Schema. */
  function control(input, required) {
    if (Array.isArray(input.enum)) {
      const select = el("select", {}, ...input.enum.map((value) => el("option", {}, PiRun.json(value))));
      const given = input.enum.findIndex((value) => JSON.stringify(value) === JSON.stringify(input.default));
      select.selectedIndex = Math.max(0, given);
      return select;
    }
    if (input.type === "boolean") {
      const box = el("input", { type: "checkbox" });
      box.checked = input.default === true;
      return box;
    }
    let field;
    if (input.format === "password") field = el("input", { type: "password", autocomplete: "off" });
    else if (input.type === "integer" || input.type === "number") field = el("input", { type: "number", step: input.type === "integer" ? "1" : "any" });
    else field = el("textarea", { rows: input.type === "string" ? "2" : "4", spellcheck: "false" });
    if (input.default !== undefined) field.value = PiRun.json(input.default);
    field.required = required;
    return field;
  }

  /** What a field says; undefined where it is left to the default. */
  function valueOf(field, input, required) {
    if (Array.isArray(input.enum)) return input.enum[field.selectedIndex];
    if (input.type === "boolean") return field.checked;
    if (field.value === "" && !required) return undefined;
    if (input.type === "string") return field.value;
    if (input.format !== "password" && (input.type === "integer" || input.type === "number")) return Number(field.value);
    try {
      return JSON.parse(field.value);
    } catch {
      throw new Error(`This has to be JSON, of type ${input.type}.`);
    }
  }

  function labelled(name, input, required, field) {
    const hints = [required && el("span", { class: "muted" }, "required"), input.description && el("span", { class: "muted" }, PiRun.oneLine(input.description, 300))];
    return el("label", {}, el("span", { class: "who" }, name), ...hints, field);
  }

  function specForm(spec) {
    const required = new Set(spec.inputs.required ?? []);
    const fields = Object.entries(spec.inputs.properties ?? {}).map(([name, input]) => ({ name, input, needed: required.has(name), field: control(input, required.has(name)) }));
    const prompt = spec.asks_for_prompt ? el("textarea", { rows: "3", required: true }) : null;
    const told = el("p", { class: "wrong", role: "alert" });
    const button = el("button", { type: "submit", class: "button" }, "Run");
    const start = async (event) => {
      event.preventDefault();
      told.textContent = "";
      const body = { spec: spec.name, inputs: {} };
      if (prompt) body.prompt = prompt.value;
      for (const { name, input, needed, field } of fields) {
        try {
          const value = valueOf(field, input, needed);
          if (value !== undefined) body.inputs[name] = value;
        } catch (error) {
          told.textContent = `${name}: ${error.message}`;
          field.focus();
          return;
        }
      }
      button.disabled = true;
      try {
        const run = await Server.ask("/runs", body);
        location.assign(`/watch/${run.id}`);
      } catch (error) {
        told.textContent = PiRun.visible(error.message);
        button.disabled = false;
      }
    };
    return el(
      "form",
      { class: "panel card inputs", "aria-label": spec.name, on: { submit: start } },
      el("h3", {}, spec.name),
      spec.description && el("p", { class: "muted" }, PiRun.oneLine(spec.description, 600)),
      prompt && labelled("prompt", { description: "What is asked." }, true, prompt),
      ...fields.map(({ name, input, needed, field }) => labelled(name, input, needed, field)),
      told,
      button,
    );
  }

  async function showSpecs() {
    const { specs } = await Server.ask("/specs");
    const place = document.getElementById("specs");
    place.replaceChildren(...specs.map(specForm));
    if (!specs.length) place.append(el("p", { class: "muted" }, "The server was started with no spec."));
  }

  // --- runs -------------------------------------------------------------------------------------

  const list = document.getElementById("runs");
  const more = document.getElementById("more");
  const told = document.getElementById("told");
  let older = [];

  function row(run) {
    const kind = run.live ? "running" : run.status === "ok" ? "ok" : "error";
    const figures = [run.seconds !== undefined && PiRun.duration(run.seconds), run.turns !== undefined && PiRun.plural(run.turns, "turn"), run.cost_usd > 0 && PiRun.dollars(run.cost_usd)];
    return el(
      "li",
      {},
      el("a", { href: `/watch/${run.id}` }, el("span", { class: `status status-${kind}` }, PiRun.icon(kind), run.status), el("span", { class: "who" }, PiRun.oneLine(run.spec, 80)), run.questions.length > 0 && el("span", { class: "asks-mark" }, "asks"), el("span", { class: "muted number" }, figures.filter(Boolean).join(" · ")), el("span", { class: "space" }), el("span", { class: "muted number" }, when(run.started_at))),
    );
  }

  function when(text) {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
  }

  async function showRuns() {
    if (document.hidden) return;
    try {
      const answer = await Server.ask("/runs");
      const newest = new Set(answer.runs.map((run) => run.id));
      const focused = document.activeElement?.closest("#runs a")?.getAttribute("href");
      list.replaceChildren(...[...answer.runs, ...older.filter((run) => !newest.has(run.id))].map(row));
      if (focused) list.querySelector(`a[href="${focused}"]`)?.focus({ preventScroll: true });
      if (!older.length) point(answer.next);
      told.textContent = answer.runs.length ? "" : "There is none yet.";
    } catch (error) {
      told.textContent = PiRun.visible(error.message);
    }
  }

  function point(next) {
    more.hidden = !next;
    more.dataset.before = next ?? "";
  }

  more.addEventListener("click", async () => {
    const answer = await Server.ask(`/runs?before=${more.dataset.before}`);
    older = [...older, ...answer.runs];
    point(answer.next);
    await showRuns();
  });

  showSpecs().catch((error) => {
    told.textContent = PiRun.visible(error.message);
  });
  showRuns();
  setInterval(showRuns, EVERY);
  document.addEventListener("visibilitychange", showRuns);
}
