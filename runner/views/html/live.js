// What only a live page has: a form for a spec's inputs, a box to steer, a button to stop, and the
// stream of events. What a person does is an action, a plain object, given to `onAction`:
//
//   {type: "start", inputs: {NAME: VALUE}}                       the form was sent
//   {type: "steer", queue: "steering" | "follow_up", text}       the box was
//   {type: "abort"}                                              the run is to stop
//
// `onAction` may give a promise; one that is rejected tells its error's message to the reader.

{
  const { el, oneLine } = PiRun;

  PiRun.Console = class Console {
    constructor(view, options) {
      this.view = view;
      this.told = el("p", { class: "console-told", role: "status" });
      this.text = el("textarea", { rows: "1", "aria-label": "Message to the run", placeholder: "Tell the run something; Enter sends", on: { keydown: (event) => this.#key(event), input: () => this.#grow() } });
      this.queue = el("select", { "aria-label": "When" }, el("option", { value: "steering" }, "after this turn"), el("option", { value: "follow_up" }, "when it is done"));
      this.send = el("button", { type: "submit", class: "button" }, "Send");
      this.stop = el("button", { type: "button", class: "button button-stop", on: { click: () => this.#act({ type: "abort" }, "Asked the run to stop.") } }, "Stop");
      this.box = el("form", { class: "steer", on: { submit: (event) => this.#steer(event) } }, this.text, this.queue, this.send, this.stop);
      this.form = options.inputs ? this.#inputs(options.inputs) : null;
      this.element = el("section", { class: "console", "aria-label": "Lead the run" }, this.form, this.box, this.told);
    }

    draw() {
      const { run } = this.view;
      const waits = !run.count && this.form !== null;
      if (this.form) this.form.hidden = !waits;
      this.element.parentElement?.classList.toggle("is-waiting", waits);
      this.box.hidden = waits || Boolean(run.end) || !this.view.onAction;
      this.element.hidden = this.box.hidden && !waits && !this.told.textContent;
    }

    async #act(action, done) {
      this.told.textContent = "";
      try {
        await this.view.onAction?.(action);
        this.told.textContent = done;
        return true;
      } catch (error) {
        this.told.textContent = PiRun.visible(error?.message ?? error);
        return false;
      } finally {
        this.draw();
      }
    }

    async #steer(event) {
      event.preventDefault();
      const text = this.text.value.trim();
      if (!text) return;
      this.send.disabled = true;
      if (await this.#act({ type: "steer", queue: this.queue.value, text }, "Sent.")) this.text.value = "";
      this.send.disabled = false;
      this.#grow();
    }

    #key(event) {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.box.requestSubmit();
    }

    #grow() {
      this.text.style.height = "auto";
      this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 180)}px`;
    }

    // --- the form of a spec's inputs --------------------------------------------------------------

    #inputs(inputs) {
      const fields = Object.entries(inputs).map(([name, input]) => [name, input ?? {}, control(name, input ?? {})]);
      const start = el("button", { type: "submit", class: "button" }, "Run");
      const send = async (event) => {
        event.preventDefault();
        const values = {};
        for (const [name, input, field] of fields) {
          field.setCustomValidity("");
          try {
            const value = valueOf(field, input);
            if (value !== undefined) values[name] = value;
          } catch (error) {
            field.setCustomValidity(error.message);
            field.reportValidity();
            return;
          }
        }
        start.disabled = true;
        await this.#act({ type: "start", inputs: values }, "Started.");
        start.disabled = false;
      };
      return el(
        "form",
        { class: "inputs", "aria-label": "Inputs", on: { submit: send } },
        ...fields.map(([name, input, field]) => el("label", {}, el("span", { class: "who" }, name), required(input) && el("span", { class: "muted" }, "required"), input.description && el("span", { class: "muted" }, oneLine(input.description, 300)), field)),
        start,
      );
    }
  };

  const required = (input) => input.default === undefined;

  function control(name, input) {
    const given = input.default;
    if (Array.isArray(input.enum)) {
      const options = input.enum.map((value) => el("option", {}, PiRun.json(value)));
      const select = el("select", {}, ...options);
      select.selectedIndex = Math.max(0, input.enum.findIndex((value) => value === given));
      return select;
    }
    if (input.type === "boolean") {
      const box = el("input", { type: "checkbox" });
      box.checked = given === true;
      return box;
    }
    const text = given === undefined || given === null ? "" : PiRun.json(given);
    let field;
    if (input.secret) field = el("input", { type: "password", autocomplete: "off" });
    else if (input.type === "integer" || input.type === "number") field = el("input", { type: "number", step: input.type === "integer" ? "1" : "any" });
    else field = el("textarea", { rows: input.type === "string" || !input.type ? "2" : "4", spellcheck: "false" });
    if (!input.secret) field.value = text;
    field.required = required(input) && input.type !== "string";
    return field;
  }

  /** What a field says; undefined where it is left to the default. */
  function valueOf(field, input) {
    if (Array.isArray(input.enum)) return input.enum[field.selectedIndex];
    if (input.type === "boolean") return field.checked;
    if (field.value === "" && !required(input)) return undefined;
    if (input.type === "integer" || input.type === "number") return Number(field.value);
    if (input.type === "string" || !input.type) return field.value;
    try {
      return JSON.parse(field.value);
    } catch {
      throw new Error(`This is to be JSON of type ${input.type}.`);
    }
  }

  /**
   * Give a view the events of a server's stream (text/event-stream, an event of the log in each
   * `data`), also after a break: what comes twice is left out. The stream ends with `run_end`.
   */
  PiRun.stream = (view, url) => {
    const source = new EventSource(url);
    let lost = null;
    source.onopen = () => {
      lost?.remove();
      lost = null;
    };
    source.onmessage = ({ data }) => {
      let event;
      try {
        event = JSON.parse(data);
      } catch {
        return;
      }
      view.add(event);
      if (event.type === "run_end") {
        source.close();
        view.finish();
      }
    };
    source.onerror = () => {
      if (lost || view.run.end) return;
      lost = el("p", { class: "notice notice-error" }, "The connection is lost; trying again.");
      view.head.notices.append(lost);
    };
    return source;
  };
}
