// Events, one by one, into what is shown: a tree of tasks, agents and turns, with items in them.
//
// A node is {kind: run | task | agent | turn | between, parent, children, items, …}; an item is
// {kind: message | call | hook | retry | queued | limit | expectation | …, node, at, …}. Types and
// fields that are not known do no harm, nor does a part of a log whose beginning is missing.

{
  PiRun.NO_USAGE = { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 };

  /** All tokens that were read or written. */
  PiRun.tokensOf = (usage) => usage.input + usage.output + usage.cache_read + usage.cache_write;

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  PiRun.isObject = isObject;

  /** Everything that is known of a run. `changed(what, thing)` is called for each change. */
  PiRun.Run = class Run {
    constructor({ changed = () => {}, parting = null } = {}) {
      this.changed = changed;
      this.start = null;
      this.end = null;
      this.over = false;
      this.expectations = [];
      this.errors = 0;
      this.count = 0;
      this.lastSeq = -1;
      this.timed = true;
      this.from = null;
      this.until = 0;
      this.usage = { ...PiRun.NO_USAGE };
      this.cost = 0;
      this.turns = [];
      this.calls = 0;
      this.root = this.node("run", null, {});
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
      const take = PiRun.takers.get(event.type) ?? other;
      take(this, event, at, this.agent(event, at));
      this.#part(event, at);
    }

    /** No more events will come. */
    finish() {
      this.over = true;
      if (this.parting && !this.parted) {
        const agent = this.agents.get(this.parting.agent ?? "main") ?? this.main();
        this.#mark(agent, this.until);
      }
    }

    /** The agent that the run began with. */
    main() {
      return this.agent({}, this.until);
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
      this.#mark(this.agent({ agent: this.parting.agent ?? undefined }, at), at);
    }

    #mark(agent, at) {
      this.parted = this.item(agent, "parting", at, { parting: this.parting, error: true });
    }

    /** A new node, the last below its parent. */
    node(kind, parent, more) {
      const node = { kind, parent, children: [], items: [], depth: parent?.depth ?? 0, ended: false, error: false, ...more };
      if (parent) {
        parent.children.push(node);
        this.changed("node", node);
      }
      return node;
    }

    /** The agent that an event is of. */
    agent(event, at) {
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
      const above = cut < 0 ? this.main() : this.agent({ agent: path.slice(0, cut) }, at);
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
      agent.node = this.node("agent", parent, { agent, path, at, call, depth: parent.depth + 1 });
      agent.plan = planOf(above.plan ?? this.start?.plan, name);
    }

    /** Where an agent's next item belongs. */
    place(agent) {
      if (agent.turn && !agent.turn.ended) return agent.turn;
      const parent = agent.task && !agent.task.ended ? agent.task : agent.node;
      const last = parent.children.at(-1);
      if (last?.kind === "between" && last.agent === agent) return last;
      return this.node("between", parent, { agent });
    }

    /** A new item, at the end of where its agent is. */
    item(agent, kind, at, more) {
      const node = more.node ?? this.place(agent);
      const item = { kind, node, index: node.items.length, agent, at, ...more };
      node.items.push(item);
      if (item.error) this.failed(item);
      this.changed("item", item);
      return item;
    }

    /** An item is a failure, of all that it is in as well. */
    failed(item) {
      item.error = true;
      this.errors += 1;
      for (let node = item.node; node; node = node.parent) node.error = true;
    }

    /** A new bar of the timeline. */
    span(agent, kind, at, more) {
      const span = { kind, at, end: null, agent, ...more };
      agent.spans.push(span);
      return span;
    }
  };

  /** An event of a type that is not known here. */
  function other(run, event, at, agent) {
    run.item(agent, "other", at, { event });
  }

  function planOf(plan, name) {
    const agents = isObject(plan?.resolved?.agents) ? Object.values(plan.resolved.agents) : [];
    return agents.find((one) => isObject(one) && one.name === name) ?? null;
  }

  /** All nodes below one, and itself, in the order in which they are shown. */
  PiRun.walk = function* walk(node) {
    yield node;
    for (const child of node.children) yield* walk(child);
  };
}
