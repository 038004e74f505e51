// Pages of pictures from the server -> a grid that holds only the rows on the screen.

import { html, useEffect, useLayoutEffect, useReducer, useRef, useState } from "/static/vendor/preact-htm.js";
import { get, save, send, thumbnail } from "/static/api.js";
import { confirmed } from "/static/dialog.js";
import { Icon } from "/static/icons.js";
import { follow, onRun } from "/static/runs.js";
import { shortId, useSessions } from "/static/sessions.js";
import { useTaker } from "/static/slot.js";
import { count, day, errorText, nameOf, usd } from "/static/words.js";

const CHUNK = 60;
const MAX_CHUNKS = 40;
const GAP = 6;
const MAX_SELECTED = 100;
const NO_FILTERS = { q: "", provider: "", model: "", day: "", min_usd: "", session: "" };

// The pictures by their place in the list, loaded in chunks. `shared` lets the picture's page step
// to its neighbours.
export const shared = { list: null };

class PictureStore {
  constructor(filters, changed) {
    this.filters = filters;
    this.changed = changed;
    this.chunks = new Map();
    this.length = 0;
    this.newest = null;
    this.isFiltered = Object.values(filters).some((value) => value !== "");
    this.error = null;
    this.isLoaded = false;
  }

  at(index) {
    const chunk = this.chunks.get(Math.floor(index / CHUNK));
    return chunk && chunk.pictures ? chunk.pictures[index % CHUNK] : undefined;
  }

  indexOf(handle) {
    for (const [number, chunk] of this.chunks)
      for (const [place, picture] of (chunk.pictures || []).entries())
        if (picture.handle === handle) return number * CHUNK + place;
    return -1;
  }

  need(from, to) {
    for (let number = Math.floor(from / CHUNK); number <= Math.floor(to / CHUNK); number++)
      if (!this.chunks.has(number) && (number === 0 || number * CHUNK < this.length)) this.load(number);
    while (this.chunks.size > MAX_CHUNKS) {
      const middle = (from + to) / 2 / CHUNK;
      const far = [...this.chunks.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
      this.chunks.delete(far[0]);
    }
  }

  async load(number) {
    this.chunks.set(number, {});
    const place = { limit: CHUNK, skip: number * CHUNK, before: this.newest && this.newest + 1 };
    try {
      const page = await get("/api/pictures", { ...this.filters, ...place });
      this.chunks.set(number, { pictures: page.pictures });
      if (number === 0 && page.pictures.length) this.newest = page.pictures[0].id;
      const end = number * CHUNK + page.pictures.length;
      if (!this.isFiltered) this.length = page.total;
      // A search does not count what it would find: one more row says that there is more.
      else this.length = Math.max(this.length, page.next ? end + CHUNK : end);
      if (this.isFiltered && !page.next) this.length = end;
      this.error = null;
    } catch (error) {
      this.chunks.delete(number);
      this.error = error;
    }
    this.isLoaded = true;
    this.changed();
  }
}

function useSize(ref) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry.contentRect;
      if (width) setSize({ width, height });
    });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return size;
}

function Filters({ filters, change }) {
  const [choices, setChoices] = useState([]);
  const sessions = useSessions();
  const box = useRef();
  const load = () => get("/api/gallery").then((found) => setChoices(found.models), () => {});
  // A new picture may be the first of its model.
  onRun((event) => { if (["done", "gallery", "changed", "restarted"].includes(event)) load(); });
  useEffect(() => {
    load();
    const focus = (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      box.current.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const set = (name) => (event) => change({ ...filters, [name]: event.target.value });
  const isFiltered = Object.values(filters).some((value) => value !== "");
  return html`
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <label class="search"><${Icon} name="search" />
        <input ref=${box} type="search" placeholder="Prompt, name or text" aria-label="Search prompts, names and text in pictures"
          value=${filters.q} onInput=${set("q")} />
      </label>
      <select aria-label="Model" value=${filters.model || filters.provider} onChange=${(event) => {
        const [provider, model] = event.target.value.split("/");
        change({ ...filters, provider: model ? "" : provider, model: model ? event.target.value : "" });
      }}>
        <option value="">Every model</option>
        ${[...new Set(choices.map((one) => one.name.split("/")[0]))].map((provider) => html`<optgroup key=${provider} label=${provider}>
          <option value=${provider}>All of ${provider}</option>
          ${choices.filter((one) => one.name.startsWith(provider + "/")).map((one) => html`<option key=${one.name} value=${one.name}>${one.name.slice(provider.length + 1)} (${one.pictures.toLocaleString()})</option>`)}
        </optgroup>`)}
      </select>
      <select aria-label="Cost" value=${filters.min_usd} onChange=${set("min_usd")}>
        <option value="">Any cost</option>
        <option value="0.000001">Paid</option>
        <option value="0.05">$0.05 and more</option>
        <option value="0.25">$0.25 and more</option>
        <option value="1">$1 and more</option>
      </select>
      <input type="date" aria-label="Day" value=${filters.day} onInput=${set("day")} />
      <select aria-label="Session" value=${filters.session} onChange=${set("session")}>
        <option value="">Every session</option>
        ${filters.session && !sessions.has(filters.session) && html`<option value=${filters.session}>Session ${shortId(filters.session)}</option>`}
        ${[...sessions].map(([id, name]) => html`<option key=${id} value=${id} selected=${id === filters.session}>${name.slice(0, 60)}</option>`)}
      </select>
      ${isFiltered && html`<button type="button" class="quiet" onClick=${() => { change(NO_FILTERS); if (location.hash.startsWith("#/session")) location.hash = "#/"; }}>Clear</button>`}
    </form>`;
}

// A chart or a banner that is cropped to a square shows nothing of what it says.
const isLong = ({ width, height }) => Math.max(width / height, height / width) > 1.5;

function Cell({ picture, index, length, style, isCurrent, isSelected, select }) {
  if (!picture) return html`<li class="cell waiting" style=${style} aria-hidden="true"></li>`;
  const name = nameOf(picture.title);
  return html`
    <li class=${isSelected ? "cell selected" : "cell"} style=${style} aria-setsize=${length} aria-posinset=${index + 1}>
      <a href=${"#/picture/" + picture.handle} data-index=${index} tabindex=${isCurrent ? 0 : -1}
        title=${name} aria-label=${`${name}, ${picture.kind}, ${usd(picture.cost_usd)}`}>
        <img src=${thumbnail(picture.handle)} alt="" decoding="async" class=${isLong(picture) ? "whole" : ""}
          onError=${(event) => event.target.classList.add("broken")} />
        <span class="caption">${name}</span>
        ${picture.cost_usd > 0 && html`<span class="price">${usd(picture.cost_usd)}</span>`}
      </a>
      <label class="pick"><input type="checkbox" tabindex=${isCurrent ? 0 : -1} checked=${isSelected} aria-label=${`Select ${name}`}
        onClick=${(event) => select(index, event.shiftKey)} /></label>
    </li>`;
}

// What can be done with several pictures.
function SelectionBar({ selected, change, changed }) {
  const [error, setError] = useState(null);
  const handles = [...selected];
  if (!handles.length) return null;
  const attempt = (work) => async () => {
    setError(null);
    try { await work(); } catch (problem) { setError(problem); }
  };
  const sheet = attempt(async () => { follow(await send("POST", "/api/sheets", { handles })); change(new Set()); });
  const archive = attempt(async () => save("/api/exports", { handles }, "limner-pictures.zip"));
  const remove = attempt(async () => {
    const isMeant = await confirmed({
      title: `Delete ${count(handles.length, "picture")}?`,
      text: "Their bytes and small forms are deleted, also in limner's own folder of generated pictures. What they cost stays in the ledger. Files in your own folders stay.",
      yes: "Delete",
    });
    if (!isMeant) return;
    await send("POST", "/api/deletions", { handles });
    change(new Set());
    changed();
  });
  return html`
    <div class="selection" role="toolbar" aria-label="Selected pictures">
      <strong role="status">${count(handles.length, "picture")} selected</strong>
      <button onClick=${sheet}>Contact sheet</button>
      ${handles.length === 2 && html`<a class="button" href=${`#/compare/${handles[0]}/${handles[1]}`}>Compare</a>`}
      <button onClick=${archive}>Save as ZIP</button>
      <button class="bad" onClick=${remove}>Delete</button>
      <button class="quiet" onClick=${() => change(new Set())}>Clear selection</button>
      ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
    </div>`;
}

function Grid({ store, place, selected, setSelected, isSelecting }) {
  const anchor = useRef(null);
  const scroller = useRef();
  const { width, height } = useSize(scroller);
  const [top, setTop] = useState(0);
  const [current, setCurrent] = useState(0);
  const columns = Math.max(2, Math.floor((width + GAP) / (width < 600 ? 118 : 188)));
  const edge = (width - GAP * (columns - 1)) / columns;
  const row = edge + GAP;
  const rows = Math.ceil(store.length / columns);
  const first = Math.max(0, Math.floor(top / row) - 2) * columns;
  const last = Math.min(store.length, (Math.ceil((top + height) / row) + 2) * columns);
  useEffect(() => { if (width) store.need(first, Math.max(first, last - 1)); });
  useEffect(() => { scroller.current.scrollTop = 0; setTop(0); setCurrent(0); }, [store.filters]);
  place.top = top;
  place.scroller = scroller.current;

  // With shift everything from the last selected picture to this one.
  const select = (index, isRange) => {
    const next = new Set(selected);
    const from = isRange && anchor.current !== null ? anchor.current : index;
    const isAdded = isRange || !next.has(store.at(index).handle);
    for (let at = Math.min(from, index); at <= Math.max(from, index); at++) {
      const picture = store.at(at);
      if (picture && isAdded && next.size < MAX_SELECTED) next.add(picture.handle);
      else if (picture && !isAdded) next.delete(picture.handle);
    }
    anchor.current = index;
    setSelected(next);
  };

  const go = (event) => {
    if (event.key === "Escape" && selected.size) { setSelected(new Set()); event.preventDefault(); return; }
    if (event.key === " " && event.target.dataset.index) {
      event.preventDefault();
      if (store.at(current)) select(current, event.shiftKey);
      return;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns,
      PageUp: -columns * Math.floor(height / row), PageDown: columns * Math.floor(height / row) }[event.key];
    const target = event.key === "Home" ? 0 : event.key === "End" ? store.length - 1 : step && current + step;
    if (target === undefined || target < 0 || target >= store.length) return;
    event.preventDefault();
    setCurrent(target);
    const y = Math.floor(target / columns) * row;
    const view = scroller.current;
    if (y < view.scrollTop) view.scrollTop = y;
    if (y + row > view.scrollTop + height) view.scrollTop = y + row - height;
    const focus = (tries) => {
      const link = view.querySelector(`[data-index="${target}"]`);
      if (link) link.focus({ preventScroll: true });
      else if (tries) requestAnimationFrame(() => focus(tries - 1));
    };
    requestAnimationFrame(() => focus(60));
  };

  const shown = store.at(Math.min(store.length - 1, Math.max(0, Math.floor(top / row) * columns)));
  const cells = [];
  if (width)
    for (let index = first; index < last; index++) {
      const at = `translate(${(index % columns) * (edge + GAP)}px, ${Math.floor(index / columns) * row}px)`;
      cells.push(html`<${Cell} key=${index} index=${index} length=${store.length} picture=${store.at(index)}
        isCurrent=${index === current} isSelected=${Boolean(store.at(index) && selected.has(store.at(index).handle))} select=${select} style=${{ width: edge + "px", height: edge + "px", transform: at }} />`);
    }
  return html`
    <div class="scroller" ref=${scroller} onScroll=${(event) => setTop(event.target.scrollTop)} onKeyDown=${go}
      onFocusIn=${(event) => event.target.dataset.index && setCurrent(Number(event.target.dataset.index))}>
      ${top > row && shown && html`<div class="day" aria-hidden="true">${day(shown.created_ms)}</div>`}
      <ul class=${isSelecting || selected.size ? "grid selecting" : "grid"} role="list" aria-label="Pictures" style=${{ height: Math.max(0, rows * row - GAP) + "px" }}>${cells}</ul>
    </div>`;
}

export function Gallery({ hidden, session }) {
  const [filters, setFilters] = useState(NO_FILTERS);
  useEffect(() => { if (session) setFilters({ ...NO_FILTERS, session }); }, [session]);
  const [, changed] = useReducer((number) => number + 1, 0);
  const [settled, setSettled] = useState(filters);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(filters), filters.q === settled.q ? 0 : 180);
    return () => clearTimeout(timer);
  }, [filters]);
  const [version, setVersion] = useState(0);
  const [hasNew, setNew] = useState(false);
  const place = useRef({ top: 0 });
  const [selected, setSelected] = useState(() => new Set());
  const [isSelecting, setSelecting] = useState(false);
  const [store, setStore] = useState(() => new PictureStore(settled, changed));
  const again = () => { setNew(false); setVersion((number) => number + 1); };
  onRun((event) => {
    // What is on the screen does not move under the hand of a person who looks at older pictures.
    if (["changed", "restarted"].includes(event) || (place.current.top < 1 && ["done", "gallery"].includes(event))) again();
    else if (event === "gallery") setNew(true);
  });
  const section = useRef();
  const [dropError, setDropError] = useState(null);
  useTaker(section, (promise) => promise.then((handles) => {
    setDropError(handles.length ? null : { message: "That is no picture." });
    again();
  }, setDropError), true);
  shared.list = store;
  // The old list stays until the new one has its first pictures.
  useEffect(() => {
    let isLatest = true;
    const next = new PictureStore(settled, changed);
    next.load(0).then(() => isLatest && setStore(next));
    return () => { isLatest = false; };
  }, [settled, version]);
  const isEmpty = store.isLoaded && !store.length && !store.error;
  return html`
    <section class="gallery" hidden=${hidden} aria-label="Gallery" ref=${section}>
      <header class="bar">
        <h1>Gallery</h1>
        <p class="total" role="status">${store.isLoaded && !store.isFiltered ? count(store.length, "picture") : ""}</p>
        <button class="quiet" aria-pressed=${String(isSelecting)} onClick=${() => { setSelecting(!isSelecting); setSelected(new Set()); }}>Select</button>
        <${Filters} filters=${filters} change=${setFilters} />
      </header>
      ${store.error && html`<p class="problem" role="alert">${errorText(store.error)} <button class="quiet" onClick=${() => store.load(0)}>Try again</button></p>`}
      ${dropError && html`<p class="problem" role="alert">${errorText(dropError)}</p>`}
      ${isEmpty && (store.isFiltered
        ? html`<div class="empty"><p>No picture matches.</p><p><button onClick=${() => setFilters(NO_FILTERS)}>Show every picture</button></p></div>`
        : html`<div class="empty"><h2>There is no picture yet</h2>
          <p>Everything that limner draws and sees appears here, whichever program asks for it.</p>
          <p><a class="button main" href="#/draw">Draw the first picture</a></p>
          <p>Or drop a picture here, or run <code>limner generate "a red fox in the snow"</code>.</p></div>`)}
      ${hasNew && html`<button class="new-pictures" onClick=${() => { place.current.scroller.scrollTop = 0; again(); }}>Show new pictures</button>`}
      <${Grid} store=${store} place=${place.current} selected=${selected} setSelected=${setSelected} isSelecting=${isSelecting} />
      <${SelectionBar} selected=${selected} change=${setSelected} changed=${() => setVersion((number) => number + 1)} />
    </section>`;
}
