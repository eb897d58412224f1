// What only a live page has: a box to steer, a button to stop, and the stream of events. What a person
// does is an action, a plain object, given to `onAction`:
//
//   {type: "steer", queue: "steering" | "follow_up", text}       the box was sent
//   {type: "abort"}                                              the run is to stop
//
// `onAction` may give a promise; one that is rejected tells its error's message to the reader.

{
  const { el } = PiRun;

  PiRun.Console = class Console {
    constructor(view) {
      this.view = view;
      this.told = el("p", { class: "console-told", role: "status" });
      this.text = el("textarea", { rows: "1", "aria-label": "Message to the run", placeholder: "Tell the run something; Enter sends", on: { keydown: (event) => this.#key(event), input: () => this.#grow() } });
      this.queue = el("select", { "aria-label": "When" }, el("option", { value: "steering" }, "after this turn"), el("option", { value: "follow_up" }, "when it is done"));
      this.send = el("button", { type: "submit", class: "button" }, "Send");
      this.stop = el("button", { type: "button", class: "button button-stop", on: { click: () => this.#act({ type: "abort" }, "Asked the run to stop.") } }, "Stop");
      this.box = el("form", { class: "steer", on: { submit: (event) => this.#steer(event) } }, this.text, this.queue, this.send, this.stop);
      this.element = el("section", { class: "console", "aria-label": "Lead the run" }, this.box, this.told);
    }

    draw() {
      const { run } = this.view;
      this.box.hidden = Boolean(run.end) || !this.view.onAction;
      this.element.hidden = this.box.hidden && !this.told.textContent;
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
  };

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
