// One run: as it happens, with a box to lead it and an answer to what it asks, or as it was.
"use strict";

{
  const { el } = PiRun;
  const PIECE = 2000;
  const id = location.pathname.split("/").pop();
  const path = `/runs/${id}`;
  const root = document.getElementById("pi-run");

  document.getElementById("log").href = `${path}/log`;

  // --- questions --------------------------------------------------------------------------------

  const asks = el("section", { class: "asks", "aria-label": "Questions of the run", "aria-live": "assertive" });
  const shown = new Map();

  /** Show the questions that are open; one that stands here already stays as it is. */
  function showQuestions(open) {
    const names = new Set(open.map((question) => question.id));
    for (const [name, card] of shown) {
      if (names.has(name)) continue;
      card.remove();
      shown.delete(name);
    }
    for (const question of open) {
      if (shown.has(question.id)) continue;
      const card = questionCard(question);
      shown.set(question.id, card);
      asks.append(card);
    }
  }

  function questionCard(question) {
    const told = el("p", { class: "wrong", role: "alert" });
    const answer = async (event, text) => {
      event.preventDefault();
      told.textContent = "";
      try {
        await Server.ask(`${path}/questions/${question.id}`, { answer: text });
      } catch (error) {
        told.textContent = PiRun.visible(error.message);
      }
    };
    if (question.kind === "permission") return permissionCard(question, answer, told);
    const field = el("input", { type: "text", "aria-label": "Answer", autocomplete: "off" });
    return el("form", { class: "ask", on: { submit: (event) => answer(event, field.value) } }, el("p", { class: "ask-text" }, question.text), el("div", { class: "ask-row" }, field, el("button", { type: "submit", class: "button" }, "Answer")), told);
  }

  function permissionCard(question, answer, told) {
    const about = question.text || PiRun.json(question.arguments);
    return el(
      "div",
      { class: "ask", role: "group", "aria-label": "Permission" },
      el("p", {}, "May ", el("strong", {}, question.tool_name), " be run?"),
      el("pre", { class: "ask-text", tabindex: "0" }, about),
      el("div", { class: "ask-row" }, el("button", { type: "button", class: "button", on: { click: (event) => answer(event, "allow") } }, "Allow"), el("button", { type: "button", class: "button button-stop", on: { click: (event) => answer(event, "deny") } }, "Deny")),
      told,
    );
  }

  // --- the run ----------------------------------------------------------------------------------

  function act(action) {
    if (action.type === "abort") return Server.ask(`${path}/abort`, {});
    const queue = action.queue === "follow_up" ? "follow_up" : "steer";
    return Server.ask(`${path}/${queue}`, { text: action.text });
  }

  function watch(run) {
    const view = PiRun.view(root, { name: run.spec, live: true, onAction: act });
    root.insertBefore(asks, view.console.element);
    showQuestions(run.questions);
    const source = PiRun.stream(view, `${path}/events`);
    source.addEventListener("questions", ({ data }) => showQuestions(JSON.parse(data)));
    source.addEventListener("error", () => source.readyState === EventSource.CLOSED && tellEnd(view));
    return view;
  }

  /** The stream will not come back: the run has no end in its log, or nothing of it is known. */
  async function tellEnd(view) {
    showQuestions([]);
    try {
      const run = await Server.ask(path);
      if (run.live) return location.reload();
      view.notice(run.error ?? `The run is ${run.status}.`, "error");
    } catch (error) {
      view.notice(PiRun.visible(error.message), "error");
    }
  }

  async function show(run) {
    const view = PiRun.view(root, { name: run.spec });
    if (run.error) view.notice(run.error, "error");
    if (run.status === "interrupted") view.notice("This run was interrupted; go on with it by pi-run resume.");
    const answer = await fetch(`${path}/log`);
    const lines = answer.ok ? (await answer.text()).split("\n") : [];
    for (let at = 0; at < lines.length; at += PIECE) {
      for (const line of lines.slice(at, at + PIECE)) if (line) view.add(JSON.parse(line));
      await new Promise((done) => setTimeout(done));
    }
    view.finish();
    return view;
  }

  Server.ask(path).then(
    async (run) => {
      PiRun.shown = await (run.live ? watch(run) : show(run));
      root.dataset.ready = "true";
    },
    (error) => root.append(el("p", { class: "notice notice-error" }, PiRun.visible(error.message))),
  );
}
