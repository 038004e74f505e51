// Words, pictures and options -> a quote, and with the user's agreement a picture.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { get, isHandle, send, uploadMask } from "/static/api.js";
import { MaskEditor, maskOf, regionOf } from "/static/mask.js";
import { useQuote } from "/static/quote.js";
import { follow, useRun } from "/static/runs.js";
import { atMost, errorText, usd } from "/static/words.js";
import { Render } from "/static/render.js";
import { Slot } from "/static/slot.js";

const EMPTY = {
  prompt: "", image: null, imageSize: null, steps: [], references: [], mask: null, model: "", size: "", quality: "standard",
  n: 1, seed: "", background: "", negative_prompt: "", partial_pictures: 0,
};
const IDEAS = [
  "two penguins and a snowman beside a christmas tree", "a bar chart of sales: Mon 3, Tue 5, Wed 9", "a mountain lake at dusk",
];
const SHAPES = ["1:1", "3:2", "2:3", "16:9", "9:16"];

// A painted part goes as its region to ask for the price, and as a mask in the order.
const asBody = ({ steps, imageSize, ...form }) => ({
  ...form,
  region: steps.length && imageSize ? regionOf(steps, imageSize) : null,
  seed: form.seed === "" ? null : Number(form.seed),
  n: Number(form.n),
});

function Price({ quote }) {
  if (quote.error) return html`<p class="problem" role="alert">${errorText(quote.error)}</p>`;
  if (!quote.found) return html`<p class="quote">${quote.isWaiting ? "Asking for the price" : "The price stands here before you draw."}</p>`;
  const { found } = quote;
  return html`<p class="quote"><strong>${found.exact ? usd(found.cost_usd) : atMost(found.cost_usd)}</strong>
    ${found.provider} · ${found.model} · ${found.width} × ${found.height}
    ${found.notice && html`<br /><span>${found.notice}</span>`}</p>`;
}

function Options({ form, set, models, quote }) {
  const model = models.find((one) => one.name === form.model);
  const usable = models.filter((one) => !one.missing_key && (!form.image || one.edits));
  const others = models.filter((one) => one.missing_key && (!form.image || one.edits));
  const sizes = model && model.sizes.length ? model.sizes : SHAPES;
  return html`
    <div class="options">
      <label>Model <select value=${form.model} onChange=${set("model")}>
        <option value="">limner chooses</option>
        <optgroup label="Usable now">${usable.map((one) => html`<option key=${one.name} value=${one.name}>${one.title}</option>`)}</optgroup>
        <optgroup label="Needs a key">${others.map((one) => html`<option key=${one.name} disabled>${one.title} (${one.missing_key})</option>`)}</optgroup>
      </select></label>
      <label>Size <select value=${form.size} onChange=${set("size")}>
        <option value="">${form.image ? "as the picture" : "usual"}</option>
        ${[...new Set([...sizes, ...(form.size ? [form.size] : [])])].map((one) => html`<option key=${one} value=${one} selected=${one === form.size}>${one}</option>`)}
      </select></label>
      <label>Quality <select value=${form.quality} onChange=${set("quality")}><option value="standard" selected=${form.quality === "standard"}>standard</option><option value="hd" selected=${form.quality === "hd"}>hd</option></select></label>
      <details class="wide" open=${Boolean(form.seed !== "" || form.background || form.negative_prompt)}><summary>More options</summary><div class="options">
      <label>How many <input type="number" min="1" max="10" value=${form.n} onInput=${set("n")} /></label>
      <label>Seed <input type="number" min="0" max="2147483647" value=${form.seed} placeholder="any" onInput=${set("seed")} /></label>
      <label>Background <select value=${form.background} onChange=${set("background")}><option value="">usual</option><option value="transparent">transparent</option><option value="opaque">opaque</option></select></label>
      <label class="wide">Not in the picture <input value=${form.negative_prompt} onInput=${set("negative_prompt")} /></label>
      ${quote.found && quote.found.max_partial_pictures > 0 && html`<label class="check wide">
        <input type="checkbox" checked=${form.partial_pictures > 0} onChange=${(event) => set("partial_pictures")({ target: { value: event.target.checked ? 2 : 0 } })} />
        Show it while it is drawn (it may cost more)</label>`}
      </div></details>
    </div>`;
}

function Result({ id, image, suggest }) {
  const run = useRun(id);
  if (!run) return html`<div class="result empty"><p>The picture appears here. For example:</p>
    <div class="ideas">${IDEAS.map((idea) => html`<button key=${idea} onClick=${() => suggest(idea)}>${idea}</button>`)}</div></div>`;
  const alt = `The picture for: ${run.title}`;
  return html`
    <div class="result" aria-live="polite">
      ${run.state === "running" && html`<p>${run.message || "Starting"}</p><progress aria-label="Progress" max="1" value=${run.fraction ?? undefined}></progress>`}
      ${!run.pictures.length && run.partials > 0 && html`<img src=${`/api/runs/${run.id}/partial?n=${run.partials}`} alt="The unfinished picture" />`}
      <div class=${run.pictures.length > 1 ? "several" : ""}>
        ${run.pictures.map((handle) => html`<a key=${handle} href=${"#/picture/" + handle}><img src=${`/api/pictures/${handle}/file`} alt=${alt} /></a>`)}
      </div>
      ${run.state === "done" && html`<p>${usd(run.cost_usd)}${run.text ? " · " + run.text : ""}
        ${image && run.pictures.length === 1 && html` · <a href=${`#/compare/${image}/${run.pictures[0]}`}>Compare with the picture before</a>`}</p>`}
      ${run.error && html`<p class="problem" role="alert">${errorText(run.error)}</p>`}
    </div>`;
}

// What is known about a picture -> the form that would draw it again.
async function recall(way, handle) {
  if (way === "change") return { ...EMPTY, image: handle };
  const { lineage, dimensions } = await get("/api/pictures/" + handle);
  const parents = lineage.parents || [];
  return {
    ...EMPTY, prompt: lineage.prompt || "", model: lineage.provider ? `${lineage.provider}/${lineage.model}` : "",
    size: `${dimensions.width}x${dimensions.height}`, seed: lineage.seed ?? "",
    quality: lineage.quality || "standard", background: lineage.background || "", negative_prompt: lineage.negative_prompt || "",
    image: parents[0] || null, references: parents.slice(1), mask: lineage.mask || null,
  };
}

// The part of a picture that may change: everything, or what is painted.
function Part({ form, setForm }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!form.image || form.imageSize) return;
    get("/api/pictures/" + form.image).then(({ dimensions }) => setForm((now) => ({ ...now, imageSize: dimensions })), () => {});
  }, [form.image, form.imageSize]);
  if (!form.image || !form.imageSize) return null;
  const whole = () => { setOpen(false); setForm((now) => ({ ...now, steps: [], mask: null })); };
  return html`
    <div class="part">
      <div class="choice" role="group" aria-label="What may change">
        <button type="button" aria-pressed=${String(!isOpen && !form.mask)} onClick=${whole}>The whole picture</button>
        <button type="button" aria-pressed=${String(isOpen || !!form.mask)} onClick=${() => { setOpen(true); setForm((now) => ({ ...now, mask: null })); }}>Only a part: paint it</button>
      </div>
      ${form.mask && html`<p class="quiet-text">The mask of the picture is used again.</p>`}
      ${!isOpen && html`<img class="subject" src=${`/api/pictures/${form.image}/file`} alt="The picture to change" />`}
      ${isOpen && html`<${MaskEditor} handle=${form.image} size=${form.imageSize} steps=${form.steps} change=${(steps) => setForm((now) => ({ ...now, steps }))} />`}
    </div>`;
}

// Kept between visits of the page.
let kept = { form: EMPTY, run: null };

export function Draw({ rest }) {
  const [way, handle] = rest;
  const isRecalled = isHandle(handle);
  const [form, setForm] = useState(isRecalled ? EMPTY : kept.form);
  const [models, setModels] = useState([]);
  const [run, setRun] = useState(isRecalled ? null : kept.run);
  kept = { form, run };
  const [error, setError] = useState(null);
  useEffect(() => { get("/api/models").then((found) => setModels(found.models), setError); }, []);
  useEffect(() => {
    if (!isRecalled) return;
    setRun(null);
    recall(way, handle).then(setForm, setError);
  }, [way, handle]);
  const quote = useQuote("/api/quotes", asBody(form), Boolean(form.prompt.trim()));
  const set = (name) => (event) => setForm((now) => ({ ...now, [name]: event.target.value }));
  const order = async (event) => {
    event.preventDefault();
    if (!quote.found) return;
    setError(null);
    try {
      const body = { ...asBody(form), agreed_usd: quote.found.cost_usd };
      if (form.steps.length) {
        const { handle: mask } = await uploadMask(form.image, await maskOf(form.steps, form.imageSize));
        Object.assign(body, { mask, region: null });
      }
      const started = await send("POST", "/api/drawings", body);
      follow(started);
      setRun(started.id);
    } catch (problem) {
      setError(problem);
      if (problem.code === "PRICE_CHANGED") quote.again();
    }
  };
  const verb = form.image ? "Change" : "Draw";
  return html`
    <section class="desk">
      <header class="bar"><h1>${way === "render" ? "Render" : verb}</h1>
        ${way !== "render" && form !== EMPTY && html`<button class="quiet" onClick=${() => { setForm(EMPTY); setRun(null); setError(null); location.hash = "#/draw"; }}>Start over</button>`}
        <div class="tabs">
          <a class="button" href="#/draw" aria-current=${way !== "render" ? "true" : null}>Draw or change</a>
          <a class="button" href="#/draw/render" aria-current=${way === "render" ? "true" : null}>Render a document</a>
        </div></header>
      ${way === "render" ? html`<${Render} />` : html`<div class="halves">
        <form onSubmit=${order}>
          <label class="wide">${form.image ? "What to change, and what to keep" : "What to draw"}
            <textarea rows="5" value=${form.prompt} onInput=${set("prompt")} onKeyDown=${(event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && order(event)}
              placeholder=${form.image ? "make the sky stormy, keep everything else" : "a lighthouse on a cliff at dusk"}></textarea></label>
          <${Slot} label="Picture to change" handles=${form.image ? [form.image] : []} max=${1}
            change=${(handles) => setForm({ ...form, image: handles[0] || null, imageSize: null, steps: [], mask: null, references: handles[0] ? form.references : [] })} />
          ${form.image && html`<${Slot} label="More pictures to take from" handles=${form.references} max=${15} change=${(references) => setForm({ ...form, references })} />`}
          <${Options} form=${form} set=${set} models=${models} quote=${quote} />
          <div class="order"><${Price} quote=${quote} />
            <button class="main" disabled=${!quote.found}>${verb}${quote.found && quote.found.cost_usd ? ` for ${atMost(quote.found.cost_usd).replace("at most ", "")}` : ""}</button></div>
          ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
        </form>
        <div class="stack">
          ${(run || !form.image) && html`<${Result} id=${run} image=${form.image} suggest=${(prompt) => setForm({ ...form, prompt })} />`}
          <${Part} key=${[way, handle, form.image].join()} form=${form} setForm=${setForm} />
        </div>
      </div>`}
    </section>`;
}
