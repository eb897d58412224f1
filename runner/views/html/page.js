// The page's beginning: what it was made for stands in it as JSON.

{
  const SOME = 24;

  const read = (id) => {
    const element = document.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  };
  const pieces = (log) => [...document.querySelectorAll(`script[data-log="${log}"]`)];

  /** Take a log's events in, piece by piece, letting the page draw in between where there are many. */
  function feed(view, scripts, done) {
    const some = scripts.splice(0, SOME);
    for (const script of some) {
      for (const event of JSON.parse(script.textContent)) view.add(event);
      script.remove();
    }
    if (scripts.length) setTimeout(() => feed(view, scripts, done), 0);
    else done();
  }

  function report(root, page) {
    const view = PiRun.view(root, { name: page.name, parting: page.parting });
    const told = () => {
      for (const notice of [...(page.notices ?? []), ...(read("notices") ?? [])]) view.notice(notice);
      view.finish();
      root.dataset.ready = "true";
    };
    feed(view, pieces("a"), told);
    return view;
  }

  function compare(root, page) {
    const events = (log) => pieces(log).flatMap((script) => JSON.parse(script.textContent));
    PiRun.diff(root, { a: { name: page.a, events: events("a") }, b: { name: page.b, events: events("b") }, differences: pieces("differences").flatMap((script) => JSON.parse(script.textContent)) });
    root.dataset.ready = "true";
    return null;
  }

  function live(root, page) {
    const view = PiRun.view(root, { name: page.name, live: true });
    root.dataset.ready = "true";
    return view;
  }

  const page = read("page");
  if (page) {
    PiRun.takeTheme();
    const kinds = { report, diff: compare, live };
    PiRun.shown = kinds[page.kind](document.getElementById("pi-run"), page);
  }
}
