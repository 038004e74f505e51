// A click on a thumbnail of the gallery -> the handle of a stored picture.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { get, thumbnail } from "/static/api.js";
import { nameOf } from "/static/words.js";

const SHOWN = 60;

export function Picker({ pick, close }) {
  const dialog = useRef();
  const [words, setWords] = useState("");
  const [pictures, setPictures] = useState(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  useEffect(() => {
    let isLatest = true;
    const timer = setTimeout(() => get("/api/pictures", { q: words, limit: SHOWN }).then((page) => isLatest && setPictures(page.pictures), () => {}), 150);
    return () => { isLatest = false; clearTimeout(timer); };
  }, [words]);
  return html`
    <dialog class="picker" ref=${dialog} aria-label="Choose a picture of the gallery" onClose=${close}>
      <div class="picker-head"><input type="search" aria-label="Search the gallery" placeholder="Search the gallery" value=${words}
        onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()} onInput=${(event) => setWords(event.target.value)} />
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></div>
      ${pictures && !pictures.length && html`<p class="quiet-text">No picture matches.</p>`}
      <div class="picker-grid">${(pictures || []).map((one) => html`<button type="button" key=${one.handle} aria-label=${`Choose ${nameOf(one.title)}`} title=${nameOf(one.title)}
        onClick=${() => { pick(one.handle); dialog.current.close(); }}><img src=${thumbnail(one.handle)} alt="" loading="lazy" /></button>`)}</div>
    </dialog>`;
}
