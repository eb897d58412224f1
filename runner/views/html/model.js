// Events, one by one, into what is shown: a tree of tasks, agents and turns, with items in them.
//
// A node is {kind: run | task | agent | turn | between, parent, children, items, …}; an item is
// {kind: message | call | hook | retry | queued | limit | expectation | …, node, at, …}. Types and
// fields that are not known do no harm, nor does a part of a log whose beginning is missing.

{
  const NO_USAGE = { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 };

  /** All tokens that were read or written. */
  PiRun.tokensOf = (usage) => usage.input + usage.output + usage.cache_read + usage.cache_write;

  function addUsage(total, more) {
    for (const key of Object.keys(total)) total[key] += Number(more?.[key]) || 0;
  }

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const list = (value) => (Array.isArray(value) ? value : []);

  /** Everything that is known of a run. `changed(what, thing)` is called for each change. */
  PiRun.Run = class Run {
    constructor({ changed = () => {}, parting = null } = {}) {
      this.changed = changed;
      this.start = null;
      this.end = null;
      this.resumes = [];
      this.expectations = [];
      this.errors = 0;
      this.count = 0;
      this.lastSeq = -1;
      this.timed = true;
      this.from = null;
      this.until = 0;
      this.usage = { ...NO_USAGE };
      this.cost = 0;
      this.turns = [];
      this.calls = 0;
      this.items = 0;
      this.root = this.#node("run", null, {});
      this.agents = new Map();
      this.marks = [];
      this.parting = parting;
      this.parted = null;
    }

    /** Take the next event. One that was taken already, as its `seq` tells, is left out. */
    add(event) {
      if (!isObject(event) || typeof event.type !== "string") return;
      if (typeof event.seq === "number") {
        if (event.seq <= this.lastSeq) return;
        this.lastSeq = event.seq;
      }
      this.count += 1;
      const at = this.#time(event);
      const handle = HANDLERS[event.type];
      if (handle) handle(this, event, at, this.#agent(event, at));
      else if (!QUIET.has(event.type)) this.#item(this.#agent(event, at), "other", at, { event });
      this.#part(event, at);
    }

    /** No more events will come. */
    finish() {
      if (this.parting && !this.parted) {
        const agent = this.agents.get(this.parting.agent ?? "main") ?? this.main();
        this.#mark(agent, this.until);
      }
    }

    main() {
      return this.#agent({}, this.until);
    }

    #time(event) {
      let at = typeof event.t === "number" ? event.t : null;
      if (at === null) {
        if (this.count === 1) this.timed = false;
        at = this.timed ? this.until : this.count;
      } else if (!this.timed) at = this.count;
      if (this.from === null) this.from = at;
      this.until = Math.max(this.until, at);
      return at;
    }

    #part(event, at) {
      const seq = this.parting?.seq;
      if (this.parted || typeof seq !== "number" || !(event.seq >= seq)) return;
      this.#mark(this.#agent({ agent: this.parting.agent ?? undefined }, at), at);
    }

    #mark(agent, at) {
      this.parted = this.#item(agent, "parting", at, { parting: this.parting, error: true });
    }

    #node(kind, parent, more) {
      const node = { kind, parent, children: [], items: [], depth: parent?.depth ?? 0, ended: false, error: false, ...more };
      if (parent) {
        parent.children.push(node);
        this.changed("node", node);
      }
      return node;
    }

    #agent(event, at) {
      const path = typeof event.agent === "string" ? event.agent : "main";
      let agent = this.agents.get(path);
      if (agent) return agent;
      agent = {
        path,
        node: this.root,
        task: null,
        tasks: [],
        turn: null,
        open: new Map(),
        calls: new Map(),
        requests: [],
        spans: [],
        working: new Set(),
        price: null,
        plan: null,
      };
      this.agents.set(path, agent);
      if (path !== "main") this.#attach(agent, path, event, at);
      this.changed("agent", agent);
      return agent;
    }

    /** Find the call or task that a sub-agent works for, and put it below that. */
    #attach(agent, path, event, at) {
      const cut = path.lastIndexOf("/");
      const above = cut < 0 ? this.main() : this.#agent({ agent: path.slice(0, cut) }, at);
      const name = path.slice(cut + 1).replace(/#\d+$/, "");
      const open = [...above.calls.values()].filter((call) => !call.ended);
      const named = open.filter((call) => call.name === name);
      const call =
        above.calls.get(event.tool_call_id) ??
        (named.length ? named : open).find((one) => !above.working.has(one));
      const tasks = above.tasks.filter((task) => !task.ended);
      const task =
        tasks.find((one) => one.id === event.task_id && one.iteration === event.iteration) ??
        tasks.find((one) => !above.working.has(one));
      const owner = call ?? task;
      if (owner) above.working.add(owner);
      const parent = call ? call.node : (task ?? above.turn ?? above.task ?? above.node);
      agent.node = this.#node("agent", parent, { agent, path, at, call, depth: parent.depth + 1 });
      agent.above = above;
      agent.plan = planOf(above.plan ?? this.start?.plan, name);
    }

    /** Where an agent's next item belongs. */
    #place(agent) {
      if (agent.turn && !agent.turn.ended) return agent.turn;
      const parent = agent.task && !agent.task.ended ? agent.task : agent.node;
      const last = parent.children.at(-1);
      if (last?.kind === "between" && last.agent === agent) return last;
      return this.#node("between", parent, { agent });
    }

    #item(agent, kind, at, more) {
      const node = more.node ?? this.#place(agent);
      const item = { kind, node, agent, at, ...more };
      node.items.push(item);
      item.number = this.items++;
      if (item.error) this.#failed(item);
      this.changed("item", item);
      return item;
    }

    #failed(item) {
      item.error = true;
      this.errors += 1;
      for (let node = item.node; node; node = node.parent) node.error = true;
    }

    #span(agent, kind, at, more) {
      const span = { kind, at, end: null, agent, ...more };
      agent.spans.push(span);
      return span;
    }

    static handlers = {
      run_start(run, event) {
        run.start = event;
        run.main().plan = isObject(event.plan) ? event.plan : null;
        run.changed("run", null);
      },

      run_resume(run, event, at, agent) {
        run.resumes.push(event);
        run.end = null;
        for (const one of run.agents.values()) one.requests = [];
        run.marks.push({ at, kind: "resume", text: "resumed", item: run.#item(agent, "resume", at, { event }) });
        run.changed("run", null);
      },

      task_start(run, event, at, agent) {
        // A sub-agent's only task needs no heading of its own.
        const parent = agent.node;
        if (parent.kind === "agent" && event.task_id === "main") return;
        const task = run.#node("task", parent, { agent, at, id: event.task_id, iteration: event.iteration, item: event.item });
        task.span = run.#span(agent, "task", at, { node: task });
        agent.tasks.push(task);
        agent.task = task;
      },

      task_end(run, event, at, agent) {
        const task =
          agent.tasks.find((one) => !one.ended && one.id === event.task_id && one.iteration === event.iteration) ??
          (agent.node.kind === "agent" ? agent.node : null);
        const failed = event.status !== "ok" && event.status !== "skipped";
        if (failed || event.skipped || event.warning || isObject(event.output) || list(event.output).length) {
          const node = task && task.kind === "task" ? run.#tail(task, agent) : undefined;
          run.#item(agent, "task_end", at, { event, error: failed, ...(node ? { node } : {}) });
        }
        if (!task) return;
        task.status = event.status;
        if (task.kind !== "task") return;
        task.ended = true;
        task.until = at;
        task.span.end = at;
        agent.tasks = agent.tasks.filter((one) => one !== task);
        agent.task = agent.tasks.at(-1) ?? null;
        run.changed("node", task);
      },

      agent_end(run, event, at, agent) {
        for (const entry of list(event.queued)) {
          run.#item(agent, "queued", at, { event: { ...entry, source: "left" }, left: true });
        }
        if (agent.node.kind !== "agent") return;
        agent.node.ended = true;
        agent.node.until = at;
        agent.node.status ??= event.stop_reason === "error" ? "error" : "ok";
        run.changed("node", agent.node);
      },

      turn_start(run, event, at, agent) {
        const parent = agent.task ?? agent.node;
        const turn = run.#node("turn", parent, { agent, at, turn: event.turn, usage: { ...NO_USAGE }, cost: null, calls: 0 });
        turn.span = run.#span(agent, "turn", at, { node: turn });
        agent.turn = turn;
        run.turns.push(turn);
        run.changed("run", null);
      },

      turn_end(run, event, at, agent) {
        const turn = agent.turn;
        if (!turn || turn.ended) return;
        turn.ended = true;
        turn.until = at;
        turn.span.end = at;
        turn.stop = event.stop_reason;
        run.changed("node", turn);
      },

      model_request(run, event, at, agent) {
        const place = run.#place(agent);
        const span = run.#span(agent, "model", at, { node: place, label: event.model });
        agent.requests.push({ event, at, span });
      },

      model_retry(run, event, at, agent) {
        const last = agent.requests.at(-1);
        const item = run.#item(agent, "retry", at, { event, error: false });
        if (last) Object.assign(last.span, { end: at, error: true, item });
      },

      message_start(run, event, at, agent) {
        const message = isObject(event.message) ? event.message : {};
        if (message.role === "assistant") run.#begin(agent, message, at);
      },

      message_update(run, event, at, agent) {
        const item = agent.open.get(event.message_id) ?? run.#begin(agent, { id: event.message_id, role: "assistant" }, at);
        const delta = isObject(event.delta) ? event.delta : {};
        const block = (item.blocks[delta.index] ??= { type: delta.kind, text: "" });
        if (delta.kind === "tool_call") {
          block.name ??= delta.name;
          block.id ??= delta.id;
          block.text += delta.arguments ?? "";
        } else block.text += delta.text ?? "";
        run.changed("delta", item);
      },

      message_end(run, event, at, agent) {
        const message = isObject(event.message) ? event.message : {};
        if (message.role === "tool_result") run.#result(agent, message, at);
        else if (message.role === "assistant") run.#answer(agent, message, at);
        else run.#item(agent, "message", at, { message, role: message.role, ended: true });
      },

      tool_execution_start(run, event, at, agent) {
        const item = run.#item(agent, "call", at, {
          id: event.tool_call_id,
          name: String(event.tool_name),
          arguments: event.arguments,
          updates: [],
          hooks: [],
          ended: false,
        });
        item.span = run.#span(agent, "tool", at, { item, node: item.node, label: item.name });
        agent.calls.set(event.tool_call_id, item);
        run.calls += 1;
        if (item.node.kind === "turn") item.node.calls += 1;
        run.changed("run", null);
      },

      tool_execution_update(run, event, at, agent) {
        const call = agent.calls.get(event.tool_call_id);
        if (!call) return;
        call.updates.push({ at, update: event.update });
        run.changed("delta", call);
      },

      tool_execution_end(run, event, at, agent) {
        let call = agent.calls.get(event.tool_call_id);
        if (!call || call.ended) {
          HANDLERS.tool_execution_start(run, event, at, agent);
          call = agent.calls.get(event.tool_call_id);
        }
        call.ended = true;
        call.end = at;
        call.span.end = at;
        call.result = isObject(event.result) ? event.result : { content: [] };
        call.seconds = event.seconds;
        call.stopped = event.stopped;
        call.terminate = event.terminate;
        if (event.is_error) {
          call.span.error = true;
          run.#failed(call);
        }
        run.changed("changed", call);
      },

      hook_decision(run, event, at, agent) {
        const call = agent.calls.get(event.tool_call_id);
        const error = event.action === "fail" || Boolean(event.stop);
        const item = run.#item(agent, "hook", at, { event, call, error });
        if (call) {
          call.hooks.push(event);
          run.changed("changed", call);
        }
        run.marks.push({ at, kind: "hook", text: `${event.hook}: ${event.action}`, item });
      },

      message_queued(run, event, at, agent) {
        const item = run.#item(agent, "queued", at, { event });
        run.marks.push({ at, kind: "queued", text: `queued: ${event.queue}`, item });
      },

      limit_reached(run, event, at, agent) {
        const item = run.#item(agent, "limit", at, { event, error: true });
        run.marks.push({ at, kind: "error", text: `limit ${event.limit}`, item });
      },

      tool_unavailable(run, event, at, agent) {
        run.#item(agent, "unavailable", at, { event, error: true });
      },

      expectation(run, event, at, agent) {
        const item = run.#item(agent, "expectation", at, { event, error: !event.passed });
        run.expectations.push(item);
        if (item.error) {
          const tasks = agent.node.children.filter((node) => node.kind === "task" && node.id === event.task_id);
          for (const task of tasks.slice(-1)) {
            task.unmet = true;
            run.changed("node", task);
          }
        }
        run.changed("run", null);
      },

      run_end(run, event, at) {
        run.end = event;
        run.root.ended = true;
        for (const agent of run.agents.values()) {
          for (const span of agent.spans) span.end ??= at;
        }
        run.changed("run", null);
      },
    };

    /** The place below a task for what comes at its end. */
    #tail(task, agent) {
      const last = task.children.at(-1);
      return last?.kind === "between" ? last : this.#node("between", task, { agent });
    }

    #begin(agent, message, at) {
      const requests = agent.requests;
      agent.requests = [];
      const span = requests.at(-1)?.span ?? this.#span(agent, "model", at, { node: this.#place(agent) });
      const item = this.#item(agent, "message", at, {
        role: "assistant",
        message,
        blocks: [],
        requests: requests.map((one) => one.event),
        asked: requests.at(-1)?.at ?? at,
        ended: false,
        span,
      });
      span.item = item;
      span.label ??= message.model;
      agent.open.set(message.id, item);
      return item;
    }

    #answer(agent, message, at) {
      const item = agent.open.get(message.id) ?? this.#begin(agent, message, at);
      agent.open.delete(message.id);
      Object.assign(item, { message, ended: true, end: at, blocks: [] });
      item.span.end = at;
      if (message.stop_reason === "error" || message.stop_reason === "aborted") {
        item.span.error = true;
        this.#failed(item);
      }
      const cost = costOf(agent.plan, message);
      addUsage(this.usage, message.usage);
      if (item.node.kind === "turn") {
        addUsage(item.node.usage, message.usage);
        if (cost !== null) item.node.cost = (item.node.cost ?? 0) + cost;
      }
      this.cost += cost ?? 0;
      this.changed("changed", item);
      this.changed("usage", item.node);
    }

    /** A result is shown with its call; what joined the history otherwise, on its own too. */
    #result(agent, message, at) {
      const call = agent.calls.get(message.tool_call_id);
      const same = call?.result && JSON.stringify(call.result.content) === JSON.stringify(message.content);
      if (call && (same || message.content === undefined)) {
        call.messageId = message.id;
        this.changed("changed", call);
        return;
      }
      this.#item(agent, "message", at, { role: "tool_result", message, ended: true, error: Boolean(message.is_error) && !call });
    }
  };

  const HANDLERS = PiRun.Run.handlers;
  const QUIET = new Set(["agent_start"]);

  function planOf(plan, name) {
    const agents = isObject(plan?.resolved?.agents) ? Object.values(plan.resolved.agents) : [];
    return agents.find((one) => isObject(one) && one.name === name) ?? null;
  }

  /** The price of an answer in USD, by the plan; null where that has none. */
  function costOf(plan, message) {
    const model = isObject(plan?.model) ? plan.model : null;
    if (!model || !message.usage) return null;
    const fallback = list(model.fallback);
    const chosen = fallback.length
      ? [model, ...fallback].find((one) => one.id === message.model && one.provider === message.provider)
      : model;
    const price = chosen?.price;
    if (!isObject(price)) return null;
    let sum = 0;
    for (const key of ["input", "output", "cache_read", "cache_write"]) {
      sum += (Number(price[key]) || 0) * (Number(message.usage[key]) || 0);
    }
    return sum / 1e6;
  }

  /** All nodes below one, and itself, in the order in which they are shown. */
  PiRun.walk = function* walk(node) {
    yield node;
    for (const child of node.children) yield* walk(child);
  };

  /** The texts of an item, for a search. */
  PiRun.textsOf = function* textsOf(item) {
    const event = item.event;
    if (item.kind === "call") {
      yield item.name;
      yield PiRun.json(item.arguments);
      yield* blockTexts(item.result?.content);
      if (item.result?.details !== undefined) yield PiRun.json(item.result.details);
      for (const { update } of item.updates) yield PiRun.json(update);
    } else if (item.kind === "message") {
      yield* blockTexts(item.message.content ?? item.blocks);
      if (item.message.error) yield String(item.message.error.message);
    } else if (event) {
      for (const [key, value] of Object.entries(event)) {
        if (!["seq", "t", "type", "agent"].includes(key)) yield PiRun.json(value);
      }
    } else if (item.parting) yield PiRun.json(item.parting);
  };

  function* blockTexts(blocks) {
    for (const block of list(blocks)) {
      if (!isObject(block) || block.type === "image") continue;
      if (typeof block.text === "string") yield block.text;
      if (block.type === "tool_call") {
        yield String(block.name);
        yield PiRun.json(block.arguments ?? "");
      }
    }
  }
}
