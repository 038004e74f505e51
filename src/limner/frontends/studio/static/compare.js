// Two pictures -> one above the other with a slider, and the areas in which they differ.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { file, get, isHandle } from "/static/api.js";
import { Slot } from "/static/slot.js";
import { Icon } from "/static/icons.js";
import { Viewer } from "/static/picture.js";
import { count, errorText } from "/static/words.js";

const WORDS = { changed: "changed", colour: "another colour", moved: "moved", added: "added", removed: "removed" };

const said = (area) => {
  if (area.kind === "colour") return `${WORDS.colour}: ${area.before} to ${area.after}`;
  if (area.moved_by) return `moved by ${area.moved_by[0]}, ${area.moved_by[1]} pixels`;
  return WORDS[area.kind];
};

function Both({ first, second, size, areas, share, change, isMarked }) {
  const isDragged = useRef(false);
  const drag = (event) => {
    event.stopPropagation();
    if (!isDragged.current) return;
    const box = event.currentTarget.parentElement.getBoundingClientRect();
    change(Math.round(Math.min(100, Math.max(0, (100 * (event.clientX - box.left)) / box.width))));
  };
  return html`
    <${Viewer} src=${file(first)} width=${size.width} height=${size.height} label="Both pictures, the second one on the right">
      ${(scale) => html`
        <img class="over" src=${file(second)} alt="" draggable=${false} style=${{ clipPath: `inset(0 0 0 ${share}%)` }} />
        <div class="edge" style=${{ left: share + "%" }} onPointerMove=${drag} onPointerUp=${() => { isDragged.current = false; }}
          onPointerDown=${(event) => { event.stopPropagation(); isDragged.current = true; event.currentTarget.setPointerCapture(event.pointerId); }}></div>
        ${isMarked && areas.map((area, index) => html`<div key=${index} class="difference" style=${{
          left: area.box.x * scale + "px", top: area.box.y * scale + "px",
          width: area.box.width * scale + "px", height: area.box.height * scale + "px" }}><span>${index + 1}</span></div>`)}`}
    <//>`;
}

export function Compare({ rest }) {
  const [first, second] = rest.map((one) => (isHandle(one) ? one : null));
  const [found, setFound] = useState(null);
  const [size, setSize] = useState(null);
  const [error, setError] = useState(null);
  const [share, setShare] = useState(50);
  const [isMarked, setMarked] = useState(true);
  useEffect(() => {
    setFound(null); setSize(null); setError(null);
    if (!first || !second) return;
    get("/api/pictures/" + first).then((facts) => setSize(facts.dimensions), setError);
    get(`/api/pictures/${first}/differences`, { other: second }).then(setFound, setError);
  }, [first, second]);
  const go = (a, b) => { location.hash = "#/compare/" + [a || "-", b || "-"].join("/"); };
  const isSameSize = found && found.before_size.join() === found.after_size.join();
  return html`
    <section class="desk">
      <header class="bar">${first && html`<a class="button" href=${"#/picture/" + first} aria-label="Back to the picture"><${Icon} name="back" /></a>`}<h1>Compare</h1></header>
      <div class="halves">
        <div class="stack">
          <${Slot} label="First picture" handles=${first ? [first] : []} max=${1} change=${(handles) => go(handles[0], second)} />
          <${Slot} label="Second picture" handles=${second ? [second] : []} max=${1} change=${(handles) => go(first, handles[0])} />
          ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
          ${found && size && html`
            <label class="wide">First and second <input type="range" min="0" max="100" value=${share} onInput=${(event) => setShare(Number(event.target.value))} /></label>
            <label class="check"><input type="checkbox" checked=${isMarked} onChange=${(event) => setMarked(event.target.checked)} /> Mark the differences</label>
            ${!isSameSize && html`<p class="quiet-text">The pictures have different sizes: ${found.before_size.join(" × ")} and ${found.after_size.join(" × ")}.</p>`}
            ${isSameSize && html`<div role="status"><p>${found.areas.length ? count(found.areas.length + found.left_out, "difference") : "No pixel differs visibly."}</p>
              <ol class="areas">${found.areas.map((area, index) => html`<li key=${index}>${said(area)}, at ${area.box.x}, ${area.box.y} (${area.box.width} × ${area.box.height})</li>`)}</ol></div>`}`}
        </div>
        ${found && size ? html`<div class="looks"><${Both} first=${first} second=${second} size=${size} areas=${isSameSize ? found.areas : []} share=${share} change=${setShare} isMarked=${isMarked} /></div>`
          : html`<div class="result empty"><p>${first && second && !error ? "Comparing" : "Choose two pictures."}</p></div>`}
      </div>
    </section>`;
}
