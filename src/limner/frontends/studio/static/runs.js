// The stream of events -> the runs, for every page, and a tray that shows those of this visit.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { send, thumbnail } from "/static/api.js";
import { Icon } from "/static/icons.js";
import { errorText, usd } from "/static/words.js";

const SHOWN_MS = 6000;
const runs = new Map();
const mine = new Set();
const listeners = new Set();
let isConnected = true;
let isNewServer = false;

const tell = (event, run) => { for (const listener of listeners) listener(event, run); };

function listen() {
  const source = new EventSource("/api/events");
  source.onopen = () => { isConnected = true; tell("connection"); };
  source.onerror = () => {
    isConnected = false;
    tell("connection");
    // The browser tries again by itself, unless the server refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  };
  source.addEventListener("runs", (event) => {
    const listed = JSON.parse(event.data);
    const known = new Set(listed.map((run) => run.id));
    // A run that the server does not know was lost with the server that it belonged to.
    for (const [id, run] of runs)
      if (!known.has(id) && run.state === "running")
        runs.set(id, { ...run, state: "failed", isLost: true, error: { message: "The server was restarted." } });
    for (const run of listed) runs.set(run.id, run);
    if (isNewServer) tell("restarted");
    isNewServer = true;
    tell("runs");
  });
  source.addEventListener("gallery", () => tell("gallery"));
  for (const name of ["started", "progress", "partial", "done", "failed"])
    source.addEventListener(name, (event) => {
      const run = JSON.parse(event.data);
      runs.set(run.id, run);
      tell(name, run);
      // What went well must not cover the page for long.
      if (name === "done") setTimeout(() => { mine.delete(run.id); tell("connection"); }, SHOWN_MS);
    });
}
listen();

export function follow(run) {
  mine.add(run.id);
  if (!runs.has(run.id)) runs.set(run.id, run);
  tell("started", run);
}

// Another page of this window changed what the gallery lists.
export const changedElsewhere = () => tell("changed");

export function onRun(listener) {
  useEffect(() => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  });
}

export function useRun(id) {
  const [, change] = useState(0);
  onRun(() => change((number) => number + 1));
  return runs.get(id);
}

const STATES = { done: "Done", failed: "Failed" };

function Entry({ run, close }) {
  const first = run.pictures[0];
  return html`
    <li class="entry">
      ${first && html`<a href=${"#/picture/" + first} aria-label="Open the picture"><img src=${thumbnail(first)} alt="" width="44" height="44" /></a>`}
      ${!first && run.partials > 0 && html`<img src=${`/api/runs/${run.id}/partial?n=${run.partials}`} alt="" width="44" height="44" />`}
      <div>
        <p class="entry-title">${run.title}</p>
        <p class=${run.state === "failed" ? "entry-state bad" : "entry-state"}>
          ${run.state === "running" ? run.message || "Starting" : STATES[run.state]}
          ${run.cost_usd > 0 ? ` · ${usd(run.cost_usd)}` : ""}
          ${run.error ? ` · ${errorText(run.error)}` : ""}
          ${run.isLost ? html` <a href="#/money">Look at open jobs</a>` : ""}
        </p>
        ${run.text && html`<p class="entry-state">${run.text}</p>`}
        ${run.state === "running" && html`<progress aria-label="Progress" max="1" value=${run.fraction ?? undefined}></progress>`}
      </div>
      ${run.state === "running"
        ? html`<button class="quiet" onClick=${() => send("POST", `/api/runs/${run.id}/cancel`)}>Stop</button>`
        : html`<button class="quiet" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>`}
    </li>`;
}

export function Tray() {
  const [, change] = useState(0);
  const again = () => change((number) => number + 1);
  onRun(again);
  const shown = [...runs.values()].filter((run) => mine.has(run.id) || run.state === "running");
  return html`
    <section class="tray" aria-label="Activity" role="status">
      ${!isConnected && html`<p class="lost">The server does not answer. The page tries again.</p>`}
      ${shown.length > 0 && html`<ul>${shown.slice(-5).reverse().map((run) => html`<${Entry} key=${run.id} run=${run}
        close=${() => { mine.delete(run.id); again(); }} />`)}</ul>`}
    </section>`;
}
