// Criteria in words and a reference -> verdicts with their evidence, and boxes for the picture.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { send } from "/static/api.js";
import { Slot } from "/static/slot.js";
import { useRun } from "/static/runs.js";
import { atMost, count, errorText, usd } from "/static/words.js";

const KINDS = { pass: "good", fail: "bad", "cannot tell": "" };
const SAID = { true: "Everything passes.", false: "Something fails.", null: "Something cannot be determined." };

// What the picture shows of a finished check: a box for each verdict and each difference.
const marksOf = ({ verdicts }) => [
  ...verdicts.criteria.filter((one) => one.box).map((one) => ({ box: one.box, kind: KINDS[one.verdict], text: one.criterion })),
  ...((verdicts.difference && verdicts.difference.boxes) || []).map((one) => ({ box: one.box, kind: "bad", text: one.text })),
];

function Verdicts({ details, ask }) {
  const { verdicts, asks_usd } = details;
  const open = verdicts.criteria.filter((one) => one.verdict === "cannot tell").length;
  return html`
    <p role="status"><strong>${SAID[verdicts.pass]}</strong>${verdicts.cost_usd ? ` ${usd(verdicts.cost_usd)}` : ""}</p>
    <ul class="rows verdicts">${verdicts.criteria.map((one, index) => html`<li key=${index}>
      <span class=${"badge " + KINDS[one.verdict]}>${one.verdict}</span> <strong>${one.criterion}</strong>
      <p class="quiet-text">${one.verdict === "cannot tell" && asks_usd !== null ? "Nothing that can be measured here decides it." : one.evidence}${one.by !== "limner" ? ` (${one.by})` : ""}</p></li>`)}
      ${verdicts.difference && html`<li><span class=${"badge " + (verdicts.difference.changed ? "bad" : "good")}>${verdicts.difference.changed ? "fail" : "pass"}</span> <strong>Equals the reference</strong>
        ${verdicts.difference.boxes.map((one, index) => html`<p key=${index} class="quiet-text">${one.text}</p>`)}
        ${verdicts.difference.left_out > 0 && html`<p class="quiet-text">and ${count(verdicts.difference.left_out, "more difference")}</p>`}</li>`}
    </ul>
    ${asks_usd !== null && open > 0 && html`<button onClick=${() => ask(asks_usd)}>Ask a model about ${count(open, "criterion", "criteria")} for ${atMost(asks_usd)}</button>`}`;
}

export function Check({ handle, mark }) {
  const [words, setWords] = useState("");
  const [against, setAgainst] = useState(null);
  const [id, setId] = useState(null);
  const [error, setError] = useState(null);
  const run = useRun(id);
  const details = run && run.details;
  useEffect(() => { if (details) mark(marksOf(details)); }, [details]);
  const expect = words.split("\n").map((line) => line.trim()).filter(Boolean);
  const order = async (agreed_usd) => {
    setError(null);
    mark([]);
    try { setId((await send("POST", "/api/checks", { handle, against, expect, agreed_usd })).id); } catch (problem) { setError(problem); }
  };
  return html`
    <section aria-labelledby="check-title"><h2 id="check-title">Check</h2>
      <form class="stack" onSubmit=${(event) => { event.preventDefault(); order(0); }}>
        <label>Criteria, one in a line
          <textarea rows="3" value=${words} placeholder=${"shows 'Save'\nhas 3 buttons\ntext is readable"} onInput=${(event) => setWords(event.target.value)}></textarea></label>
        <${Slot} label="Equals this picture" handles=${against ? [against] : []} max=${1} change=${(handles) => setAgainst(handles[0] || null)} />
        <div><button disabled=${(!expect.length && !against) || (run && run.state === "running")}>Check, for free</button></div>
      </form>
      ${run && run.state === "running" && html`<p>${run.message || "Checking"}</p><progress aria-label="Progress"></progress>`}
      ${(error || (run && run.error)) && html`<p class="problem" role="alert">${errorText(error || run.error)}</p>`}
      ${details && html`<${Verdicts} details=${details} ask=${order} />`}
    </section>`;
}
