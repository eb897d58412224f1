// Data as text: everything that a model, a tool or a spec said gets into the page through here.
"use strict";

const PiRun = {};

{
  // What would turn the direction of writing, would not be seen, or is no character at all.
  const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
  const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
  const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

  function sign(char) {
    const code = char.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  }

  /** A text with each control code shown as a sign; tabs and newlines stay. */
  PiRun.visible = (text) => String(text).replace(HIDDEN, sign);

  /** A text's beginning, no half of a character at its end. */
  PiRun.cut = (text, limit) => text.slice(0, /[\ud800-\udbff]/.test(text.charAt(limit - 1)) ? limit - 1 : limit);

  /** A text as one line of at most `limit` characters. */
  PiRun.oneLine = (text, limit = 160) => {
    const line = PiRun.visible(PiRun.cut(String(text), 2 * limit).replace(/\s+/g, " ").trim());
    return line.length <= limit && text.length <= 2 * limit ? line : `${PiRun.cut(line, limit - 1)}…`;
  };

  /**
   * An element. `props` are attributes, but for `class`, `on` (listeners by event) and `show`
   * (left out where false). Children are elements, or texts, which become text nodes.
   */
  PiRun.el = (tag, props, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props ?? {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "class") element.className = value;
      else if (name === "on") {
        for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
      } else element.setAttribute(name, value === true ? "" : PiRun.visible(value));
    }
    PiRun.put(element, ...children);
    return element;
  };

  /** Append elements and texts; what is nothing is left out. */
  PiRun.put = (element, ...children) => {
    for (const child of children.flat()) {
      if (child === undefined || child === null || child === false || child === "") continue;
      element.append(child instanceof Node ? child : PiRun.visible(child));
    }
    return element;
  };

  /** A picture from the page's own set, drawn by the style sheet. */
  PiRun.icon = (name) => PiRun.el("span", { class: `icon icon-${name}`, "aria-hidden": "true" });

  /** An image block; one of another type than the few that are only pixels is told, not shown. */
  PiRun.image = (block) => {
    const data = typeof block.data === "string" ? block.data : "";
    const size = PiRun.bytes(Math.floor((data.length * 3) / 4));
    if (!IMAGES.has(block.mime_type) || !BASE64.test(data)) {
      const why = data ? `${size}, not shown` : "left out of this page";
      return PiRun.el("p", { class: "muted" }, `Image, ${PiRun.oneLine(block.mime_type ?? "?", 60)}, ${why}`);
    }
    const image = PiRun.el("img", { alt: `Image, ${block.mime_type}, ${size}`, loading: "lazy", decoding: "async" });
    image.src = `data:${block.mime_type};base64,${data.replace(/\s+/g, "")}`;
    return image;
  };

  /** Put a text into an element, what a search looks for marked in it. */
  PiRun.fill = (element, text, pattern) => {
    const shown = PiRun.visible(text);
    if (!pattern) {
      element.textContent = shown;
      return element;
    }
    element.textContent = "";
    let end = 0;
    let count = 0;
    for (const found of shown.matchAll(pattern)) {
      if (!found[0] || ++count > 2000) break;
      element.append(shown.slice(end, found.index), PiRun.el("mark", {}, found[0]));
      end = found.index + found[0].length;
    }
    element.append(shown.slice(end));
    return element;
  };

  /** JSON for people. */
  PiRun.json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "null");

  const number = new Intl.NumberFormat("en-US");
  const money = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

  PiRun.number = (value) => number.format(value);
  PiRun.compact = (value) => (value < 10000 ? number.format(value) : short.format(value));
  PiRun.plural = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;
  PiRun.dollars = (cost) =>
    `$${cost === 0 ? "0" : cost < 1 ? cost.toFixed(cost < 0.001 ? 6 : 4) : money.format(cost)}`;
  PiRun.bytes = (count) =>
    count < 1000 ? `${count} B` : count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
  PiRun.duration = (seconds) => {
    if (seconds < 0.0005) return "0 ms";
    if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
    if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  };

  /** Round moments between two, some 90 px apart, each with its text. */
  PiRun.ticks = (from, until, width, timed) => {
    const step = stepFor(((until - from) / width) * 90, timed);
    const ticks = [];
    for (let at = Math.ceil(from / step); at * step <= until && ticks.length < 60; at++) {
      ticks.push([at * step, timed ? tickText(at * step, step) : `event ${Math.round(at * step)}`]);
    }
    return ticks;
  };

  /** The next round number of seconds, in minutes and hours from a minute on; or of events. */
  function stepFor(rough, timed) {
    const clock = timed ? [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400] : [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const round = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
    return rough > 5 ? (clock.find((one) => one >= rough) ?? round) : round;
  }

  function tickText(time, step) {
    if (time === 0) return "0";
    if (step < 1) return time < 1 ? `${Math.round(time * 1e6) / 1e3} ms` : `${Number(time.toFixed(3))} s`;
    if (time < 60) return `${Math.round(time)} s`;
    const whole = Math.round(time);
    const clock = `${Math.floor((whole % 3600) / 60)}:${String(whole % 60).padStart(2, "0")}`;
    return whole < 3600 ? clock : `${Math.floor(whole / 3600)}:${clock.padStart(5, "0")}`;
  }
}
