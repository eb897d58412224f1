// Two values line by line, as a comparison shows them.

{
  const { el, put, plural } = PiRun;
  const MOST_CELLS = 4e6;
  const MOST_LINES = 400;
  const LINE = 4000;
  // What is not parted: the letters of a word, the halves of a character.
  const WHOLE = /[\w\ud800-\udfff]/;

  /** Two values, `a` and `b` of an object, line by line; one that is not there has no lines. */
  PiRun.compared = (one, names = ["in A", "in B"]) => {
    const lines = "a" in one && "b" in one ? lineDiff(textOf(one.a).split("\n"), textOf(one.b).split("\n")) : null;
    const rows = lines ?? [...("a" in one ? sideLines("-", one.a) : []), ...("b" in one ? sideLines("+", one.b) : [])];
    const drawn = rows.slice(0, MOST_LINES).map((row, index) => diffLine(row, partner(rows, index), names));
    if (rows.length > MOST_LINES) drawn.push(el("p", { class: "muted" }, `… ${plural(rows.length - MOST_LINES, "more line")}`));
    return el("div", { class: "diff" }, ...drawn);
  };

  /** The line that a changed line took the place of, or that took its place. */
  function partner(rows, index) {
    const [mark] = rows[index];
    const other = mark === "-" ? rows[index + 1] : mark === "+" ? rows[index - 1] : null;
    const alone = mark === "-" ? rows[index - 1]?.[0] !== "-" && rows[index + 2]?.[0] !== "+" : rows[index + 1]?.[0] !== "+" && rows[index - 2]?.[0] !== "-";
    return other && alone && other[0] === (mark === "-" ? "+" : "-") ? other[1] : null;
  }

  function diffLine([mark, line], other, names) {
    const kind = mark === "-" ? "old" : mark === "+" ? "new" : "same";
    const text = line.length > LINE ? `${PiRun.cut(line, LINE)}…` : line;
    const shown = el("span", { class: "diff-text", dir: "auto" });
    if (other === null || line.length > LINE) put(shown, text || "\u00a0");
    else {
      const [start, end] = middle(line, other);
      put(shown, line.slice(0, start), start < end && el("b", {}, line.slice(start, end)), line.slice(end));
    }
    return el("div", { class: `diff-line diff-${kind}` }, mark === " " ? el("span", {}) : el("span", { class: "diff-mark", role: "img", "aria-label": names[mark === "-" ? 0 : 1] }, mark), shown);
  }

  /** The part of a line between what it shares with another at its two ends, whole words of it. */
  function middle(line, other) {
    const most = Math.min(line.length, other.length);
    let start = 0;
    while (start < most && line[start] === other[start]) start += 1;
    let left = 0;
    while (left < most - start && line.at(-1 - left) === other.at(-1 - left)) left += 1;
    while (start > 0 && WHOLE.test(line[start - 1])) start -= 1;
    let end = line.length - left;
    while (end < line.length && WHOLE.test(line[end])) end += 1;
    return [start, end];
  }

  const textOf = (value) => PiRun.json(value);
  const sideLines = (mark, value) => textOf(value).split("\n").map((line) => [mark, line]);

  /** The lines of two texts in which they differ, with few of those around; null if it is too much. */
  function lineDiff(a, b) {
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let endA = a.length;
    let endB = b.length;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
      endA -= 1;
      endB -= 1;
    }
    const n = endA - start;
    const m = endB - start;
    if (n * m > MOST_CELLS) return null;
    const width = m + 1;
    const longest = new Uint32Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        longest[i * width + j] = a[start + i] === b[start + j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    const rows = a.slice(Math.max(0, start - 2), start).map((line) => [" ", line]);
    let i = 0;
    let j = 0;
    while (i < n || j < m) {
      if (i < n && j < m && a[start + i] === b[start + j]) {
        rows.push([" ", a[start + i]]);
        i += 1;
        j += 1;
      } else if (j >= m || (i < n && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) rows.push(["-", a[start + i++]]);
      else rows.push(["+", b[start + j++]]);
    }
    return [...rows, ...a.slice(endA, endA + 2).map((line) => [" ", line])];
  }
}
