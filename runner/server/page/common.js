// How pages speak with the server.
"use strict";

const Server = {};

{
  /** Ask the server; gives the answer's JSON, or null. An error's message is for people. */
  Server.ask = async (path, body) => {
    const sent = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, sent);
    if (answer.status === 401) location.assign("/login");
    const text = await answer.text();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      value = null;
    }
    if (!answer.ok) throw new Error(value?.error?.message ?? `The server answers ${answer.status}.`);
    return value;
  };

  PiRun.takeTheme();
}
