// A picture, a part of it and a question -> what the model sees, the price, and the answer.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { file, get, isHandle, send } from "/static/api.js";
import { Slot } from "/static/slot.js";
import { Viewer } from "/static/picture.js";
import { useQuote } from "/static/quote.js";
import { useRun } from "/static/runs.js";
import { atMost, bytes, count, errorText, usd } from "/static/words.js";

const asBody = ({ handle, question, region, model }) => ({ handle, question, region, model });

// A rectangle that is dragged over the picture, in pixels of the picture.
function Region({ size, region, change, scale }) {
  const start = useRef(null);
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = (from, length, most) => Math.round(Math.min(most, Math.max(0, ((from) / length) * most)));
    return { x: place(event.clientX - box.left, box.width, size.width), y: place(event.clientY - box.top, box.height, size.height) };
  };
  const move = (event) => {
    if (!start.current) return;
    event.stopPropagation();
    const a = start.current, b = at(event);
    const next = { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
    change(next.width > 3 && next.height > 3 ? next : null);
  };
  const px = (value) => value * scale + "px";
  return html`
    <div class="region-layer" onPointerDown=${(event) => {
      event.stopPropagation();
      start.current = at(event);
      event.currentTarget.setPointerCapture(event.pointerId);
    }} onPointerMove=${move} onPointerUp=${(event) => { move(event); start.current = null; }}>
      ${region && html`<div class="region" style=${{ left: px(region.x), top: px(region.y), width: px(region.width), height: px(region.height) }}></div>`}
    </div>`;
}

function View({ form, model }) {
  const [facts, setFacts] = useState(null);
  const [error, setError] = useState(null);
  // While a part is being dragged, the picture of the last one stays.
  const part = form.region || { x: 0, y: 0, width: 0, height: 0 };
  const fields = { ...part, ...(model ? { model } : {}) };
  const path = `/api/pictures/${form.handle}/view`;
  useEffect(() => {
    setError(null);
    const timer = setTimeout(() => get(`${path}/facts`, fields).then((found) => setFacts({ ...found, fields }), setError), 300);
    return () => clearTimeout(timer);
  }, [form.handle, JSON.stringify(fields)]);
  if (error) return html`<p class="problem" role="alert">${errorText(error)}</p>`;
  if (!facts) return null;
  return html`
    <figure class="view"><figcaption>What ${facts.model || "a model"} gets: ${facts.width} × ${facts.height}, ${bytes(facts.bytes)}
      ${facts.tokens != null ? ` · ${facts.tokens_exact ? "" : "at most "}${count(facts.tokens, "token")}` : ""}${facts.cost_usd ? ` · ${usd(facts.cost_usd)}` : ""}</figcaption>
      <img src=${`${path}?${new URLSearchParams(facts.fields)}`} alt="The picture as the model gets it" /></figure>`;
}

// Kept between visits of the page.
let kept = { handle: null, question: "", region: null, model: "" };

const NUMBERS = [["x", "Left"], ["y", "Top"], ["width", "Width"], ["height", "Height"]];

export function Inspect({ rest }) {
  const given = isHandle(rest[0]) ? rest[0] : null;
  const [form, setForm] = useState(given ? { ...kept, handle: given, question: "", region: null } : kept);
  kept = form;
  const [size, setSize] = useState(null);
  const [models, setModels] = useState({ models: [], used: undefined });
  const [runId, setRun] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { get("/api/seeing-models").then(setModels, (problem) => { setError(problem); setModels({ models: [], used: null }); }); }, []);
  useEffect(() => {
    setSize(null);
    if (form.handle) get("/api/pictures/" + form.handle).then((facts) => setSize(facts.dimensions), setError);
  }, [form.handle]);
  const quote = useQuote("/api/questions/quote", asBody(form), Boolean(form.handle && form.question.trim()));
  const run = useRun(runId);
  useEffect(() => { if (run && run.error && run.error.code === "PRICE_CHANGED") quote.again(); }, [run && run.error]);
  const ask = async (event) => {
    event.preventDefault();
    if (!quote.found) return;
    setError(null);
    try {
      const started = await send("POST", "/api/questions", { ...asBody(form), agreed_usd: quote.found.cost_usd });
      setRun(started.id);
    } catch (problem) { setError(problem); }
  };
  const setNumber = (name) => (event) => {
    const region = { x: 0, y: 0, width: size.width, height: size.height, ...form.region, [name]: Math.max(0, Number(event.target.value) | 0) };
    setForm({ ...form, region });
  };
  return html`
    <section class="desk">
      <header class="bar"><h1>Inspect</h1></header>
      <div class="halves">
        <form onSubmit=${ask}>
          <${Slot} label="Picture" handles=${form.handle ? [form.handle] : []} max=${1}
            change=${(handles) => setForm({ ...form, handle: handles[0] || null, region: null })} />
          <label class="wide">Question
            <textarea rows="3" value=${form.question} placeholder="What does the sign say?" onInput=${(event) => setForm({ ...form, question: event.target.value })}></textarea></label>
          <label class="model">Model <select value=${form.model} onChange=${(event) => setForm({ ...form, model: event.target.value })}>
            <option value="">as the settings say${models.used ? ` (${models.used})` : ""}</option>
            ${models.models.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
          </select></label>
          ${size && html`<fieldset class="numbers"><legend>Part of the picture: drag over it, or type</legend>
            ${NUMBERS.map(([name, title]) => html`<label key=${name}>${title} <input type="number" min="0" value=${form.region ? form.region[name] : ""} placeholder=${name in size ? size[name] : 0} onInput=${setNumber(name)} /></label>`)}
            ${form.region && html`<button type="button" class="quiet" onClick=${() => setForm({ ...form, region: null })}>Whole picture</button>`}</fieldset>`}
          <div class="order">
            ${quote.error ? html`<p class="problem" role="alert">${errorText(quote.error)}</p>`
              : html`<p class="quote">${quote.found ? html`<strong>${atMost(quote.found.cost_usd)}</strong> ${quote.found.model}` : "The price stands here before you ask."}</p>`}
            <button class="main" disabled=${!quote.found}>Ask${quote.found && quote.found.cost_usd ? ` for ${atMost(quote.found.cost_usd).replace("at most ", "")}` : ""}</button></div>
          ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
          ${run && html`<div class="answer" aria-live="polite">
            ${run.state === "running" && html`<p>${run.message || "Starting"}</p><progress aria-label="Progress"></progress>`}
            ${run.text && html`<p class="prompt">${run.text}</p>`}
            ${run.error && html`<p class="problem">${errorText(run.error)}</p>`}
            ${run.state === "done" && html`<p class="quiet-text">${usd(run.cost_usd)}</p>`}</div>`}
        </form>
        ${form.handle && size ? html`<div class="looks">
          <${Viewer} src=${file(form.handle)} width=${size.width} height=${size.height} label="The picture">
            ${(scale) => html`<${Region} size=${size} region=${form.region} scale=${scale} change=${(region) => setForm((now) => ({ ...now, region }))} />`}
          <//>
          ${models.used !== undefined && html`<${View} form=${form} model=${form.model || models.used} />`}
        </div>` : html`<div class="result empty"><p>Drop, paste or choose a picture.</p></div>`}
      </div>
    </section>`;
}
