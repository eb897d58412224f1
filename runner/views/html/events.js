// What each type of event does to a run. A function takes the run, the event, when it was and its agent.

{
  const { isObject } = PiRun;
  const list = (value) => (Array.isArray(value) ? value : []);

  const TAKE = {
    agent_start() {},

    run_start(run, event) {
      run.start = event;
      run.main().plan = isObject(event.plan) ? event.plan : null;
      run.changed("run", null);
    },

    run_resume(run, event, at, agent) {
      run.end = null;
      run.over = false;
      for (const one of run.agents.values()) one.requests = [];
      run.marks.push({ at, kind: "resume", text: "resumed", item: run.item(agent, "resume", at, { event }) });
      run.changed("run", null);
    },

    task_start(run, event, at, agent) {
      // A sub-agent's only task needs no heading of its own.
      const parent = agent.node;
      if (parent.kind === "agent" && event.task_id === "main") return;
      const task = run.node("task", parent, { agent, at, id: event.task_id, iteration: event.iteration, item: event.item });
      task.span = run.span(agent, "task", at, { node: task });
      agent.tasks.push(task);
      agent.task = task;
    },

    task_end(run, event, at, agent) {
      const task =
        agent.tasks.find((one) => !one.ended && one.id === event.task_id && one.iteration === event.iteration) ??
        (agent.node.kind === "agent" ? agent.node : null);
      const failed = event.status !== "ok" && event.status !== "skipped";
      if (failed || event.skipped || event.warning || isObject(event.output) || list(event.output).length) {
        const node = task && task.kind === "task" ? tail(run, task, agent) : undefined;
        run.item(agent, "task_end", at, { event, error: failed, ...(node ? { node } : {}) });
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
        run.item(agent, "queued", at, { event: { ...entry, source: "left" }, left: true });
      }
      if (agent.node.kind !== "agent") return;
      agent.node.ended = true;
      agent.node.until = at;
      agent.node.status ??= event.stop_reason === "error" ? "error" : "ok";
      run.changed("node", agent.node);
    },

    turn_start(run, event, at, agent) {
      const parent = agent.task ?? agent.node;
      const turn = run.node("turn", parent, { agent, at, turn: event.turn, usage: { ...PiRun.NO_USAGE }, cost: null, calls: 0 });
      turn.span = run.span(agent, "turn", at, { node: turn });
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
      const place = run.place(agent);
      const span = run.span(agent, "model", at, { node: place, label: event.model });
      agent.requests.push({ event, at, span });
    },

    model_retry(run, event, at, agent) {
      const last = agent.requests.at(-1);
      const item = run.item(agent, "retry", at, { event, error: false });
      if (last) Object.assign(last.span, { end: at, error: true, item });
    },

    message_start(run, event, at, agent) {
      const message = isObject(event.message) ? event.message : {};
      if (message.role === "assistant") begin(run, agent, message, at);
    },

    message_update(run, event, at, agent) {
      const item = agent.open.get(event.message_id) ?? begin(run, agent, { id: event.message_id, role: "assistant" }, at);
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
      if (message.role === "tool_result") result(run, agent, message, at);
      else if (message.role === "assistant") answer(run, agent, message, at);
      else run.item(agent, "message", at, { message, role: message.role, ended: true });
    },

    tool_execution_start(run, event, at, agent) {
      const item = run.item(agent, "call", at, {
        id: event.tool_call_id,
        name: String(event.tool_name),
        arguments: event.arguments,
        updates: [],
        hooks: [],
        ended: false,
      });
      item.span = run.span(agent, "tool", at, { item, node: item.node, label: item.name });
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
        TAKE.tool_execution_start(run, event, at, agent);
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
        run.failed(call);
      }
      run.changed("changed", call);
    },

    hook_decision(run, event, at, agent) {
      const call = agent.calls.get(event.tool_call_id);
      const error = event.action === "fail" || Boolean(event.stop);
      const item = run.item(agent, "hook", at, { event, call, error });
      if (call) {
        call.hooks.push(event);
        run.changed("changed", call);
      }
      run.marks.push({ at, kind: "hook", text: `${event.hook}: ${event.action}`, item });
    },

    message_queued(run, event, at, agent) {
      const item = run.item(agent, "queued", at, { event });
      run.marks.push({ at, kind: "queued", text: `queued: ${event.queue}`, item });
    },

    limit_reached(run, event, at, agent) {
      const item = run.item(agent, "limit", at, { event, error: true });
      run.marks.push({ at, kind: "error", text: `limit ${event.limit}`, item });
    },

    tool_unavailable(run, event, at, agent) {
      run.item(agent, "unavailable", at, { event, error: true });
    },

    expectation(run, event, at, agent) {
      const item = run.item(agent, "expectation", at, { event, error: !event.passed });
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
      run.over = true;
      run.root.ended = true;
      for (const agent of run.agents.values()) {
        for (const span of agent.spans) span.end ??= at;
      }
      run.changed("run", null);
    },
  };

  /** By an event's type, what takes it in. */
  PiRun.takers = new Map(Object.entries(TAKE));

  /** The place below a task for what comes at its end. */
  function tail(run, task, agent) {
    const last = task.children.at(-1);
    return last?.kind === "between" ? last : run.node("between", task, { agent });
  }

  function begin(run, agent, message, at) {
    const requests = agent.requests;
    agent.requests = [];
    const span = requests.at(-1)?.span ?? run.span(agent, "model", at, { node: run.place(agent) });
    const item = run.item(agent, "message", at, {
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

  function answer(run, agent, message, at) {
    const item = agent.open.get(message.id) ?? begin(run, agent, message, at);
    agent.open.delete(message.id);
    Object.assign(item, { message, ended: true, end: at, blocks: [] });
    item.span.end = at;
    if (message.stop_reason === "error" || message.stop_reason === "aborted") {
      item.span.error = true;
      run.failed(item);
    }
    const cost = costOf(agent.plan, message);
    addUsage(run.usage, message.usage);
    if (item.node.kind === "turn") {
      addUsage(item.node.usage, message.usage);
      if (cost !== null) item.node.cost = (item.node.cost ?? 0) + cost;
    }
    run.cost += cost ?? 0;
    run.changed("changed", item);
    run.changed("usage", item.node);
  }

  /** A result is shown with its call; what joined the history otherwise, on its own too. */
  function result(run, agent, message, at) {
    const call = agent.calls.get(message.tool_call_id);
    const same = call?.result && JSON.stringify(call.result.content) === JSON.stringify(message.content);
    if (call && (same || message.content === undefined)) {
      call.messageId = message.id;
      run.changed("changed", call);
      return;
    }
    run.item(agent, "message", at, { role: "tool_result", message, ended: true, error: Boolean(message.is_error) && !call });
  }

  function addUsage(total, more) {
    for (const key of Object.keys(total)) total[key] += Number(more?.[key]) || 0;
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
}
