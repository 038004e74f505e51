// A document -> its picture while it is written, and in the gallery when it is saved.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { fileUrl, send } from "/static/api.js";
import { follow } from "/static/runs.js";
import { errorText } from "/static/words.js";

const EXAMPLES = {
  Chart: '{\n  "type": "bar",\n  "title": "Sales",\n  "labels": ["Mon", "Tue", "Wed"],\n  "values": [3, 5, 9]\n}',
  Diagram: "flowchart LR\n  A[Ask] --> B[Reserve] --> C[Send] --> D[Settle]",
  SVG: '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 120">\n  <rect width="200" height="120" fill="#fdf6e3"/>\n  <circle cx="100" cy="60" r="40" fill="#3d4fb8"/>\n</svg>',
};

// Keep the source between visits of the page.
let kept = EXAMPLES.Chart;

export function Render() {
  const [source, setSource] = useState(kept);
  const [shown, setShown] = useState({});
  const latest = useRef(0);
  kept = source;
  useEffect(() => {
    const number = ++latest.current;
    if (!source.trim()) return;
    const timer = setTimeout(async () => {
      try {
        const url = await fileUrl("/api/previews", { source });
        if (number !== latest.current) { URL.revokeObjectURL(url); return; }
        setShown((now) => { if (now.url) URL.revokeObjectURL(now.url); return { url }; });
      } catch (error) {
        if (number === latest.current) setShown((now) => ({ ...now, error }));
      }
    }, 250);
    return () => clearTimeout(timer);
  }, [source]);
  const save = async (event) => {
    event.preventDefault();
    try { follow(await send("POST", "/api/renderings", { source })); } catch (error) { setShown((now) => ({ ...now, error })); }
  };
  return html`
    <div class="halves">
      <form onSubmit=${save}>
        <div class="examples">${Object.entries(EXAMPLES).map(([name, text]) => html`<button type="button" class="quiet" key=${name} onClick=${() => setSource(text)}>${name}</button>`)}</div>
        <label class="wide source">Document: limner's JSON, SVG, DOT, Mermaid, Vega-Lite or Typst
          <textarea rows="22" spellcheck=${false} value=${source} onInput=${(event) => setSource(event.target.value)}></textarea></label>
        <div class="order"><p class="quote"><strong>free</strong> drawn here, exactly as written</p>
          <button class="main" disabled=${!source.trim() || !!shown.error}>Save to the gallery</button></div>
      </form>
      <div class="result" aria-live="polite">
        ${shown.error && html`<p class="problem" role="alert">${errorText(shown.error)}</p>`}
        ${shown.url && html`<img src=${shown.url} alt="Preview of the document" class=${shown.error ? "stale" : ""} />`}
      </div>
    </div>`;
}
