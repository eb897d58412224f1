// Where the timeline's bars are: which row of which agent's lane, and which bar is beside which.

{
  const NAMES = { task: "tasks", turn: "turns", model: "model", tool: "tools" };

  PiRun.Lanes = class Lanes {
    constructor(run) {
      this.run = run;
      this.lanes = new Map();
      this.count = 0;
    }

    /** Put new spans into rows: one a kind, but tools and tasks at the same time below each other. */
    layOut() {
      this.count = 0;
      for (const agent of this.run.agents.values()) {
        if (!agent.spans.length) continue;
        const lane = this.#lane(agent);
        for (; lane.taken < agent.spans.length; lane.taken++) {
          const span = agent.spans[lane.taken];
          const group = lane.kinds[span.kind];
          const row = group.find((one) => (one.at(-1).end ?? Infinity) <= span.at);
          if (row) row.push(span);
          else group.push([span]);
        }
        lane.top = this.count;
        this.count += 1 + Object.values(lane.kinds).reduce((sum, group) => sum + group.length, 0);
      }
    }

    #lane(agent) {
      let lane = this.lanes.get(agent);
      if (!lane) {
        lane = { agent, taken: 0, top: 0, kinds: { task: [], turn: [], model: [], tool: [] } };
        this.lanes.set(agent, lane);
      }
      return lane;
    }

    /** The rows from one to another; that of an agent's name has no spans. */
    *rows(first = 0, last = Infinity) {
      for (const { agent, top, kinds } of this.lanes.values()) {
        if (top > last) return;
        let at = top;
        if (at >= first) yield { at, name: agent.path.slice(agent.path.lastIndexOf("/") + 1), agent };
        for (const [kind, group] of Object.entries(kinds)) {
          for (const [number, spans] of group.entries()) {
            at += 1;
            if (at >= first && at <= last) yield { at, spans, name: number ? "" : NAMES[kind] };
          }
        }
      }
    }

    rowOf(span) {
      return this.#filled().find(({ spans }) => spans.includes(span))?.at ?? 0;
    }

    /** The span that is `by` further in the same row. */
    along(span, by) {
      const rows = this.#filled();
      const spans = (rows.find((row) => row.spans.includes(span)) ?? rows[0])?.spans ?? [];
      const at = spans.indexOf(span);
      return spans[at < 0 ? 0 : Math.min(Math.max(at + by, 0), spans.length - 1)];
    }

    /** The span of the row `by` below that begins at about the same time. */
    across(span, by) {
      const rows = this.#filled();
      const at = rows.findIndex(({ spans }) => spans.includes(span));
      const spans = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]?.spans ?? [];
      const when = span?.at ?? -Infinity;
      const off = (one) => Math.abs(one.at - when);
      return spans.length ? spans.reduce((best, one) => (off(one) < off(best) ? one : best)) : null;
    }

    #filled() {
      return [...this.rows()].filter((row) => row.spans);
    }
  };
}
