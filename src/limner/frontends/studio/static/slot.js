// Files and pictures of the gallery -> handles. What is pasted or dropped goes to the slot under it,
// or to the first slot of the page that has room.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { thumbnail, upload } from "/static/api.js";
import { Picker } from "/static/picker.js";
import { errorText } from "/static/words.js";

const takers = new Set();

const isPicture = (transfer) => ["Files", "text/uri-list"].some((type) => transfer.types.includes(type));

async function handlesOf(files, link = "") {
  const dragged = /#\/picture\/([0-9a-f]{64})/.exec(link);
  if (dragged) return [dragged[1]];
  const pictures = [...files].filter((one) => one.type.startsWith("image/"));
  return Promise.all(pictures.map(async (one) => (await upload(one)).handle));
}

function give(event, transfer) {
  event.preventDefault();
  const shown = [...takers].filter((one) => one.ref.current && one.ref.current.offsetParent);
  const taker = shown.find((one) => one.ref.current.contains(event.target)) || shown.find((one) => one.hasRoom) || shown[0];
  if (taker) taker.take(handlesOf(transfer.files, transfer.getData("text/uri-list")));
}

// Without these, the browser would leave the page for a dropped file.
const showDrag = (isOver) => document.body.classList.toggle("dragging", isOver);
addEventListener("dragover", (event) => { if (isPicture(event.dataTransfer)) { event.preventDefault(); showDrag(true); } });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) showDrag(false); });
addEventListener("dragend", () => showDrag(false));
addEventListener("drop", (event) => { showDrag(false); if (isPicture(event.dataTransfer)) give(event, event.dataTransfer); });
addEventListener("paste", (event) => { if (event.clipboardData.files.length) give(event, event.clipboardData); });

// An element that takes pictures: `take` gets a promise of their handles.
export function useTaker(ref, take, hasRoom) {
  const taker = useRef({});
  Object.assign(taker.current, { ref, take, hasRoom });
  useEffect(() => {
    takers.add(taker.current);
    return () => takers.delete(taker.current);
  }, []);
}

export function Slot({ label, handles, max, change }) {
  const [error, setError] = useState(null);
  const [isPicking, setPicking] = useState(false);
  const element = useRef();
  const hasRoom = handles.length < max;
  const take = async (promise) => {
    setError(null);
    try {
      const given = await promise;
      if (given.length) change([...new Set([...handles, ...given])].slice(-max));
      else setError({ message: "That is no picture." });
    } catch (problem) { setError(problem); }
  };
  useTaker(element, take, hasRoom);
  return html`
    <div class="slot" ref=${element}>
      <span class="label">${label}</span>
      <div class="chosen">
        ${handles.map((handle) => html`<span class="chip" key=${handle}>
          <img src=${thumbnail(handle)} alt="" width="64" height="64" />
          <button type="button" aria-label="Remove the picture" onClick=${() => change(handles.filter((one) => one !== handle))}>×</button></span>`)}
        ${hasRoom && html`<button type="button" class="add" aria-label=${`${label}: from the gallery`} onClick=${() => setPicking(true)}>From the gallery</button>`}
        ${isPicking && html`<${Picker} pick=${(handle) => take(Promise.resolve([handle]))} close=${() => setPicking(false)} />`}
        ${hasRoom && html`<label class="add">Drop, paste or choose
          <input type="file" accept="image/*" multiple=${max > 1} onChange=${(event) => take(handlesOf(event.target.files))} /></label>`}
      </div>
      ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
    </div>`;
}
