// Batches -> how far each is, the rows that failed, and the buttons to go on or to stop.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { get, send } from "/static/api.js";
import { confirmed } from "/static/dialog.js";
import { follow, onRun } from "/static/runs.js";
import { amount, atMost, count, errorText, moment, usd } from "/static/words.js";

const ASK_MS = 3000;
const fileName = (path) => path.split(/[/\\]/).pop();

const wordsOf = (batch) => (batch.state === "loading" ? "Its rows are read. If that does not end, run it again." : [
  `${batch.done.toLocaleString()} of ${count(batch.rows, "row")} done`,
  ...(batch.failed ? [`${batch.failed.toLocaleString()} failed`] : []),
  ...(batch.running ? [`${batch.running.toLocaleString()} running`] : []),
  `${amount(batch.spent_usd)} of ${amount(batch.budget_usd)}${batch.unknown_usd ? `, ${usd(batch.unknown_usd)} of it uncertain` : ""}`,
].join(" · "));

function Batch({ batch, act }) {
  const ended = batch.done + batch.failed;
  const isOpen = ended < batch.rows;
  const canResume = isOpen || batch.failed > 0;
  const cancel = async () => {
    const text = "No further row starts. Rows that run come to their end, and what is done stays.";
    if (await confirmed({ title: `Cancel ${fileName(batch.name)}?`, text, yes: "Cancel the batch" })) act(`/api/batches/${batch.id}/cancel`);
  };
  const name = fileName(batch.name);
  const resume = batch.left_usd ? `Resume for ${atMost(batch.left_usd)}` : "Resume";
  return html`
    <li class="batch" aria-label=${`Batch ${name}`}>
      <div class="batch-head"><strong title=${batch.name}>${name}</strong>
        <span class=${"badge " + { done: "good", cancelled: "bad" }[batch.state]}>${batch.running ? "running" : batch.state}</span>
        <span class="quiet-text">${moment(batch.created_ms)}${batch.lane === "cheap" ? " · cheap lane" : ""}</span>
        <span class="actions">
          ${canResume && !batch.running && html`<button aria-label=${`${resume}: ${name}`} onClick=${() => act(`/api/batches/${batch.id}/resume`, { agreed_usd: batch.left_usd })}>
            ${resume}</button>`}
          ${isOpen && batch.state !== "cancelled" && html`<button class="bad" aria-label=${`Cancel ${name}`} onClick=${cancel}>Cancel</button>`}
        </span></div>
      <progress aria-label=${`Rows of ${name} that have ended`} max=${batch.rows || 1} value=${ended}></progress>
      <p class="quiet-text">${wordsOf(batch)} · <a href=${"#/session/" + batch.id}>pictures</a></p>
      ${batch.failures.length > 0 && html`<details><summary>${count(batch.failed, "failed row")}</summary>
        <ul class="found">${batch.failures.map((row) => html`<li key=${row.key}><code>${row.key}</code> ${row.message}</li>`)}
        ${batch.failed > batch.failures.length && html`<li>and ${(batch.failed - batch.failures.length).toLocaleString()} more</li>`}</ul></details>`}
    </li>`;
}

export function Batches() {
  const [batches, setBatches] = useState(null);
  const [error, setError] = useState(null);
  const load = () => get("/api/batches").then((found) => setBatches(found.batches), setError);
  useEffect(() => { load(); }, []);
  onRun((event, run) => { if (event === "restarted" || (run && run.tool === "batch" && event !== "progress")) load(); });
  const isRunning = (batches || []).some((one) => one.running);
  // Another process may run the batch: it is asked about while rows run.
  useEffect(() => {
    const timer = isRunning && setInterval(load, ASK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  const act = async (path, body) => {
    setError(null);
    try {
      const answer = await send("POST", path, body);
      if (answer.state) { follow(answer); setTimeout(load, 700); } else setBatches(answer.batches);
    } catch (problem) { setError(problem); load(); }
  };
  return html`
    <section aria-labelledby="batches-title"><h2 id="batches-title">Batches</h2>
      ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
      ${batches && (batches.length
        ? html`<ul class="rows">${batches.map((one) => html`<${Batch} key=${one.id} batch=${one} act=${act} />`)}</ul>`
        : html`<p class="quiet-text">No batch was run. <code>limner batch run rows.jsonl</code> starts one.</p>`)}
    </section>`;
}
