// A handle -> the page of one picture: the picture, its facts, its cost and its family.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { download, file, get, send, thumbnail } from "/static/api.js";
import { Check } from "/static/check.js";
import { confirmed } from "/static/dialog.js";
import { shared } from "/static/gallery.js";
import { Icon } from "/static/icons.js";
import { changedElsewhere } from "/static/runs.js";
import { bytes, errorText, moment, nameOf, usd } from "/static/words.js";

const MAX_SCALE = 16;

// Zoom by wheel, by two fingers, by double click and by + and -, pan by dragging.
export function Viewer({ src, width, height, label, children }) {
  const frame = useRef();
  const [view, setView] = useState(null);
  const drag = useRef(null);
  const fingers = useRef(new Map());
  const fitted = () => {
    const box = frame.current.getBoundingClientRect();
    const scale = Math.min(1, box.width / width, box.height / height);
    return { scale, x: (box.width - width * scale) / 2, y: (box.height - height * scale) / 2, isFitted: true };
  };
  useEffect(() => {
    setView(fitted());
    const observer = new ResizeObserver(() => setView((now) => (!now || now.isFitted ? fitted() : now)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [src, width, height]);
  const zoom = (factor, point) => setView((now) => {
    const scale = Math.min(MAX_SCALE, Math.max(fitted().scale, now.scale * factor));
    if (scale === fitted().scale) return fitted();
    const box = frame.current.getBoundingClientRect();
    const at = point || { x: box.width / 2, y: box.height / 2 };
    const ratio = scale / now.scale;
    return { scale, x: at.x - (at.x - now.x) * ratio, y: at.y - (at.y - now.y) * ratio };
  });
  const place = (event) => {
    const box = frame.current.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const wheel = (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 300), place(event)); };
  useEffect(() => {
    const element = frame.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [width, height]);
  // Two fingers: their distance is the zoom, around the point between them.
  const pinch = (event) => {
    const before = [...fingers.current.values()];
    fingers.current.set(event.pointerId, place(event));
    const after = [...fingers.current.values()];
    const apart = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y) || 1;
    zoom(apart(after) / apart(before), { x: (after[0].x + after[1].x) / 2, y: (after[0].y + after[1].y) / 2 });
  };
  const lift = (event) => { fingers.current.delete(event.pointerId); drag.current = null; };
  const keys = (event) => {
    if (event.key === "+" || event.key === "=") zoom(1.5);
    if (event.key === "-") zoom(1 / 1.5);
    if (event.key === "0") setView(fitted());
  };
  return html`
    <div class=${view && view.isFitted ? "viewer fitted" : "viewer"} ref=${frame} tabindex="0" role="group" aria-label=${label} onKeyDown=${keys}
      onDblClick=${(event) => (view.isFitted ? zoom(1 / view.scale > 1 ? 1 / view.scale : 2, place(event)) : setView(fitted()))}
      onPointerDown=${(event) => {
        if (event.button || event.target.closest("button, a")) return;
        fingers.current.set(event.pointerId, place(event));
        drag.current = fingers.current.size === 1 ? { ...place(event), view } : null;
        frame.current.setPointerCapture(event.pointerId);
      }}
      onPointerMove=${(event) => {
        if (fingers.current.size === 2 && fingers.current.has(event.pointerId)) { pinch(event); return; }
        if (!drag.current || drag.current.view.isFitted) return;
        const now = place(event), from = drag.current;
        setView({ ...from.view, x: from.view.x + now.x - from.x, y: from.view.y + now.y - from.y });
      }}
      onPointerUp=${lift} onPointerCancel=${lift}>
      ${view && html`<div class="stage" style=${{
        width: width * view.scale + "px", height: height * view.scale + "px",
        transform: `translate(${view.x}px, ${view.y}px)` }}>
        <img src=${src} alt=${label} draggable=${false} class=${view.scale > 3 ? "pixels" : ""} />
        ${children && children(view.scale)}
      </div>`}
      <div class="tools">
        <button aria-label="Smaller" onClick=${() => zoom(1 / 1.5)}>−</button>
        <button title="Fit to the window" onClick=${() => setView(fitted())}>${view ? Math.round(view.scale * 100) : 100} %</button>
        <button aria-label="Larger" onClick=${() => zoom(1.5)}>+</button>
      </div>
    </div>`;
}

const Fact = ({ name, children }) =>
  children == null || children === "" ? null : html`<div class="fact"><dt>${name}</dt><dd>${children}</dd></div>`;

const origin = ({ lineage }) => {
  if (!lineage) return "";
  if (lineage.provider) return `${lineage.provider} · ${lineage.model}`;
  if (lineage.file) return "from a file";
  return { transform: "changed", fit: "fitted for a model", cover: "cropped to size", sheet: "contact sheet", mask: "mask" }[lineage.made] || (lineage.made ? `as ${lineage.made.toUpperCase()}` : "received");
};

// The prompt, or the name of the file, or what it is.
const titleOf = (lineage) => lineage.prompt || (lineage.file || "").split("/").pop() || (lineage.made === "sheet" ? "Contact sheet" : "");

// The family as columns: ancestors on the left, this picture in the middle, what became of it right.
function Family({ facts: all }) {
  const board = useRef();
  // A long line of ancestors is wider than the page: this picture is in view.
  useEffect(() => {
    const self = board.current && board.current.querySelector("[aria-current]");
    if (self) board.current.scrollLeft = self.getBoundingClientRect().left - board.current.getBoundingClientRect().left - 2 * 116;
  }, [all.handle]);
  // What models were sent is no picture that a person made.
  const facts = { ...all, offspring: all.offspring.filter((one) => !["fit", "mask"].includes(one.lineage.made)) };
  if (!facts.ancestors.length && !facts.offspring.length) return null;
  const self = { handle: facts.handle, lineage: facts.lineage, parent: null };
  const known = new Map([self, ...facts.ancestors, ...facts.offspring].map((one) => [one.handle, one]));
  const parents = (one) => [one.parent, ...(one.lineage.parents || [])].filter((handle) => known.has(handle));
  const columnOf = new Map([[facts.handle, 0]]);
  for (let turn = 0; turn < facts.ancestors.length + 1; turn++)
    for (const one of [self, ...facts.ancestors])
      for (const parent of parents(one))
        if (columnOf.has(one.handle)) columnOf.set(parent, Math.min(columnOf.get(parent) ?? 0, columnOf.get(one.handle) - 1));
  facts.offspring.forEach((one) => columnOf.set(one.handle, 1));
  const least = Math.min(...columnOf.values());
  const columns = new Map();
  for (const one of known.values()) {
    const column = (columnOf.get(one.handle) ?? least) - least;
    columns.set(column, [...(columns.get(column) || []), one]);
  }
  const edge = 76, wide = 116, high = 112, tallest = Math.max(...[...columns.values()].map((list) => list.length));
  const at = new Map();
  for (const [column, list] of columns)
    list.forEach((one, row) => at.set(one.handle, { x: column * wide, y: row * high + ((tallest - list.length) * high) / 2 }));
  const lines = [...known.values()].flatMap((one) => [
    ...parents(one).map((parent) => [parent, one.handle]),
    ...(facts.offspring.includes(one) && !parents(one).length ? [[facts.handle, one.handle]] : []),
  ]);
  return html`
    <section><h2>Family</h2>
      <div class="family" ref=${board} tabindex="0" role="group" aria-label="Family of the picture">
        <div class="family-board" style=${{ width: (columns.size - 1) * wide + edge + "px", height: tallest * high + "px" }}>
          <svg aria-hidden="true" width=${columns.size * wide} height=${tallest * high}>
            ${lines.map(([from, to]) => {
              const a = at.get(from), b = at.get(to);
              const [x1, y1, x2, y2] = [a.x + edge, a.y + edge / 2, b.x, b.y + edge / 2];
              return html`<path d=${`M${x1} ${y1} C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`} />`;
            })}
          </svg>
          ${[...known.values()].map((one) => {
            const { x, y } = at.get(one.handle);
            const isSelf = one.handle === facts.handle;
            return html`<a key=${one.handle} class="relative" style=${{ transform: `translate(${x}px, ${y}px)` }}
              href=${"#/picture/" + one.handle} aria-current=${isSelf ? "true" : null}
              title=${origin(one)} aria-label=${isSelf ? "This picture" : `${titleOf(one.lineage) || "Picture"}, ${origin(one)}`}>
              <img src=${thumbnail(one.handle)} alt="" width=${edge} height=${edge} onError=${(event) => event.target.classList.add("broken")} />
              <span>${isSelf ? "this picture" : titleOf(one.lineage) || origin(one)}</span></a>`;
          })}
        </div>
      </div>
    </section>`;
}

const parentOf = ({ ancestors }) => (ancestors.length ? ancestors[0].handle : null);

// The text that is read in the picture here, and the verdicts of a check, as boxes over it.
function Evidence({ lines, scale }) {
  return lines.map(({ box, text, kind }, index) => html`<div key=${index} class=${"evidence " + (kind || "")} title=${text} style=${{
    left: box.x * scale + "px", top: box.y * scale + "px", width: box.width * scale + "px", height: box.height * scale + "px" }}></div>`);
}

function Reading({ handle, lines, change }) {
  const [state, setState] = useState({});
  const read = async () => {
    setState({ isBusy: true });
    try { change((await get(`/api/pictures/${handle}/evidence`)).lines); setState({}); } catch (error) { setState({ error }); }
  };
  return html`
    <section><h2>Text in the picture</h2>
      ${!lines && html`<button onClick=${read} disabled=${state.isBusy}>${state.isBusy ? "Reading" : "Read it here, for free"}</button>`}
      ${state.error && html`<p class="problem" role="alert">${errorText(state.error)}</p>`}
      ${lines && (lines.length ? html`<ul class="found">${lines.map((one, index) => html`<li key=${index}>${one.text}</li>`)}</ul>` : html`<p class="quiet-text">No text was found.</p>`)}
    </section>`;
}

function Calls({ calls }) {
  if (!calls.length) return null;
  return html`
    <section><h2>Calls</h2>
      <table><thead><tr><th>When</th><th>Tool</th><th>State</th><th class="number">Cost</th></tr></thead>
      <tbody>${calls.map((call) => html`<tr key=${call.id}><td>${moment(call.created_ms)}</td><td>${call.tool}</td>
        <td>${call.state}</td><td class="number">${usd(call.cost_usd)}</td></tr>`)}</tbody></table>
    </section>`;
}

function Details({ facts }) {
  const { lineage } = facts;
  return html`
    ${lineage.prompt && html`<section><h2>Prompt</h2><p class="prompt">${lineage.prompt}</p>
      <button class="quiet" aria-label="Copy the prompt" onClick=${() => navigator.clipboard.writeText(lineage.prompt)}>Copy</button></section>`}
    ${lineage.revised_prompt && html`<section><h2>Prompt as the provider revised it</h2><p class="prompt">${lineage.revised_prompt}</p></section>`}
    <section><h2>Facts</h2>
      <dl class="facts">
        <${Fact} name="Cost">${facts.cost_usd == null ? "free" : `${usd(facts.cost_usd)}${facts.cost_source ? ` (${facts.cost_source})` : ""}`}<//>
        <${Fact} name="Model">${lineage.provider && `${lineage.provider}/${lineage.model}`}<//>
        <${Fact} name="Seed">${lineage.seed}<//>
        <${Fact} name="Quality">${lineage.quality}<//>
        <${Fact} name="Backdrop">${lineage.background}<//>
        <${Fact} name="Without">${lineage.negative_prompt}<//>
        <${Fact} name="Size">${facts.dimensions.width} × ${facts.dimensions.height}<//>
        <${Fact} name="File">${facts.mime.split("/")[1].toUpperCase()}, ${bytes(facts.bytes)}<//>
        <${Fact} name="Came">${moment(facts.created_ms)}<//>
        <${Fact} name="From">${lineage.file}<//>
        <${Fact} name="Handle"><code>${facts.handle}</code><//>
      </dl>
    </section>
    <${Family} facts=${facts} />
    <${Calls} calls=${facts.calls} />
    ${facts.metadata.length > 0 && html`<section><h2>Text in the file</h2><dl class="facts">
      ${facts.metadata.map((one) => html`<${Fact} name=${one.keyword}>${one.text}<//>`)}</dl></section>`}
    ${facts.provenance && html`<section><h2>C2PA</h2><dl class="facts">
      <${Fact} name="State">${facts.provenance.state}<//><${Fact} name="Signed by">${facts.provenance.signer}<//>
      <${Fact} name="Reason">${facts.provenance.reason}<//><${Fact} name="Hint">${facts.provenance.hint}<//></dl></section>`}`;
}

const neighbour = (handle, step) => {
  const list = shared.list;
  const index = list ? list.indexOf(handle) : -1;
  return index < 0 ? undefined : list.at(index + step);
};

export function PicturePage({ handle }) {
  const [facts, setFacts] = useState(null);
  const [error, setError] = useState(null);
  const [lines, setLines] = useState(null);
  const [marks, setMarks] = useState([]);
  useEffect(() => {
    get("/api/pictures/" + encodeURIComponent(handle)).then(setFacts, setError);
    const keys = (event) => {
      if (event.target.closest("input, textarea, select, dialog") || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") location.hash = "#/";
      const next = { ArrowLeft: neighbour(handle, -1), ArrowRight: neighbour(handle, 1) }[event.key];
      if (next) location.hash = "#/picture/" + next.handle;
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [handle]);
  const remove = async () => {
    const isMeant = await confirmed({
      title: "Delete this picture?", yes: "Delete",
      text: "Its bytes and small forms are deleted, also in limner's own folder of generated pictures. What it cost stays in the ledger. Files in your own folders stay.",
    });
    if (!isMeant) return;
    try { await send("POST", "/api/deletions", { handles: [handle] }); } catch (problem) { setError(problem); return; }
    location.hash = after ? "#/picture/" + after.handle : "#/";
    changedElsewhere();
  };
  const title = facts ? nameOf(titleOf(facts.lineage)) : "Picture";
  const [before, after] = [neighbour(handle, -1), neighbour(handle, 1)];
  return html`
    <article class="picture">
      <header class="bar">
        <a class="button" href="#/" aria-label="Back to the gallery"><${Icon} name="back" /></a>
        <h1>${title}</h1>
        <span class="steps">
          ${before && html`<a class="button" href=${"#/picture/" + before.handle}>Newer</a>`}
          ${after && html`<a class="button" href=${"#/picture/" + after.handle}>Older</a>`}
        </span>
        ${facts && facts.lineage.prompt && html`<a class="button" href=${"#/draw/again/" + handle}>Draw again</a>`}
        ${facts && html`<a class="button" href=${"#/draw/change/" + handle}>Change</a>`}
        ${facts && html`<a class="button" href=${"#/inspect/" + handle}>Inspect</a>`}
        ${facts && html`<a class="button" href=${`#/compare/${parentOf(facts) || "-"}/${handle}`}>Compare</a>`}
        ${facts && html`<a class="button" href=${download(handle)} aria-label="Save the picture"><${Icon} name="save" /></a>`}
        ${facts && html`<button class="bad" aria-label="Delete the picture" onClick=${remove}><${Icon} name="bin" /></button>`}
      </header>
      ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
      ${facts && html`<div class="split">
        <${Viewer} src=${file(handle)} width=${facts.dimensions.width} height=${facts.dimensions.height} label=${title}>
          ${(scale) => html`<${Evidence} lines=${[...(lines || []), ...marks]} scale=${scale} />`}<//>
        <aside aria-label="About the picture"><${Details} facts=${facts} /><${Check} handle=${handle} mark=${setMarks} /><${Reading} handle=${handle} lines=${lines} change=${setLines} /></aside>
      </div>`}
    </article>`;
}
