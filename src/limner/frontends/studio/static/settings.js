// What this installation has -> keys, caps, trusted folders, models and health, with their actions.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { get, send } from "/static/api.js";
import { confirmed, useFocusOfField } from "/static/dialog.js";
import { count, errorText } from "/static/words.js";

// A list from the server, and a function that changes it and says what went wrong.
function useList(path) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { get(path).then(setFound, setError); }, []);
  const change = async (method, at, body) => {
    setError(null);
    try { setFound(await send(method, at, body)); return true; } catch (problem) { setError(problem); return false; }
  };
  return { found, error, change };
}

const Problem = ({ error }) => error && html`<p class="problem" role="alert">${errorText(error)}</p>`;

function Key({ one, change }) {
  const [value, setValue] = useState(null);
  const { button, field } = useFocusOfField(value !== null);
  const store = async (event) => {
    event.preventDefault();
    if (await change("PUT", `/api/keys/${one.name}`, { value })) setValue(null);
  };
  const remove = async () => {
    const text = `Programs that use ${one.adds.join(", ") || "it"} need it again before they draw, look or talk.`;
    if (await confirmed({ title: `Remove ${one.name}?`, text, yes: "Remove" })) change("DELETE", `/api/keys/${one.name}`);
  };
  const state = one.source === "environment" ? "set in the environment" : one.source ? "stored" : "not set";
  return html`
    <li class="key">
      <div><strong>${one.name}</strong> <span class=${one.source ? "badge good" : "badge"}>${state}</span>
        <p class="quiet-text">${one.adds.join(", ")}</p></div>
      ${value === null
        ? html`<span class="actions"><button ref=${button} aria-label=${`${one.is_stored ? "Replace" : "Set"} ${one.name}`} onClick=${() => setValue("")}>${one.is_stored ? "Replace" : "Set"}</button>
            ${one.is_stored && html`<button class="bad" aria-label=${`Remove ${one.name}`} onClick=${remove}>Remove</button>`}</span>`
        : html`<form class="actions" onSubmit=${store}>
            <input type="password" autocomplete="off" spellcheck=${false} aria-label=${`Value of ${one.name}`} placeholder="Paste the key" value=${value} ref=${field} onInput=${(event) => setValue(event.target.value)} />
            <button class="main" disabled=${!value.trim()}>Store</button><button type="button" onClick=${() => setValue(null)}>Cancel</button></form>`}
    </li>`;
}

function Keys({ keys }) {
  return html`
    <section aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2>
      <p class="quiet-text">A key is stored in a file that only you can read, and is never shown again. A variable in the environment wins.</p>
      <${Problem} error=${keys.error} />
      ${keys.found && html`<ul class="rows">${keys.found.keys.map((one) => html`<${Key} key=${one.name} one=${one} change=${keys.change} />`)}</ul>`}
    </section>`;
}

const CAPS = { call_usd: "One call", session_usd: "One session", day_usd: "One day (UTC)" };

function Caps() {
  const caps = useList("/api/caps");
  const [form, setForm] = useState({});
  const [isSaved, setSaved] = useState(false);
  if (!caps.found) return html`<${Problem} error=${caps.error} />`;
  const shown = (cap) => form[cap.name] ?? (cap.amount_usd === null ? "" : String(cap.amount_usd));
  const store = async (event) => {
    event.preventDefault();
    if (await caps.change("PUT", "/api/caps", form)) { setForm({}); setSaved(true); }
  };
  return html`
    <section aria-labelledby="caps-title"><h2 id="caps-title">Budgets</h2>
      <p class="quiet-text">limner does not start a call that would cost more. Empty is no cap. Stored in <code>${caps.found.file}</code>.</p>
      <form class="caps" onSubmit=${store}>
        ${caps.found.caps.map((cap) => html`<label key=${cap.name}>${CAPS[cap.name]}, in dollars
          <input inputmode="decimal" placeholder="no cap" disabled=${cap.is_fixed} value=${shown(cap)} onInput=${(event) => { setSaved(false); setForm({ ...form, [cap.name]: event.target.value }); }} />
          ${cap.is_fixed && html`<span class="quiet-text">set by ${cap.source}</span>`}</label>`)}
        <button class="main wide" disabled=${!Object.keys(form).length}>Save the budgets</button>
        <span role="status" class="quiet-text wide">${isSaved ? "Saved. They hold at once in this studio, and in programs that start from now on." : ""}</span>
      </form>
      <${Problem} error=${caps.error} />
    </section>`;
}

function Trust() {
  const trust = useList("/api/trust");
  const remove = async (one) => {
    const text = "Its limner.toml can then only make settings stricter, and its programs and plug-ins are not used.";
    if (await confirmed({ title: `Trust ${one.folder} no longer?`, text, yes: "Remove the trust" })) trust.change("DELETE", `/api/trust/${one.id}`);
  };
  return html`
    <section aria-labelledby="trust-title"><h2 id="trust-title">Trusted folders</h2>
      <p class="quiet-text">To trust a folder, run <code>limner trust FOLDER</code>: no page can name a path.</p>
      <${Problem} error=${trust.error} />
      ${trust.found && (trust.found.folders.length
        ? html`<ul class="rows">${trust.found.folders.map((one) => html`<li class="key" key=${one.id}>
            <div><code>${one.folder}</code> ${one.changed.length > 0 && html`<span class="badge bad">closed: ${one.changed.join(", ")} changed</span>`}
              <p class="quiet-text">${one.files.join(", ") || "no limner.toml"}</p></div>
            <button class="bad" aria-label=${`Remove the trust in ${one.folder}`} onClick=${() => remove(one)}>Remove</button></li>`)}</ul>`
        : html`<p>You trust no folder.</p>`)}
    </section>`;
}

function Models({ version }) {
  const [draw, setDraw] = useState([]);
  const [look, setLook] = useState({ models: [], used: null });
  useEffect(() => {
    get("/api/models").then((found) => setDraw(found.models), () => {});
    get("/api/seeing-models").then(setLook, () => {});
  }, [version]);
  const usable = draw.filter((one) => !one.missing_key);
  const providers = new Map();
  for (const { name } of look.models) {
    const [provider, ...model] = name.split("/");
    providers.set(provider, [...(providers.get(provider) || []), model.join("/")]);
  }
  return html`
    <section aria-labelledby="models-title"><h2 id="models-title">Models that can be used now</h2>
      <dl class="facts">
        <div class="fact"><dt>Draw</dt><dd>${usable.map((one) => one.title).join(", ") || "none"}</dd></div>
        <div class="fact"><dt>Look</dt><dd>${look.used || "none"}</dd></div>
      </dl>
      ${providers.size > 0 && html`<details><summary>All ${count(look.models.length, "model")} that look at pictures</summary>
        <dl class="facts">${[...providers].map(([provider, models]) => html`<div class="fact" key=${provider}><dt>${provider}</dt><dd>${models.join(", ")}</dd></div>`)}</dl></details>`}
    </section>`;
}

const WORDS = { true: ["good", "works"], false: ["bad", "fails"], null: ["", "missing"] };

const Check = ({ name, state, detail }) => html`
  <li class="check-row"><span class=${"badge " + WORDS[state][0]}>${WORDS[state][1]}</span><strong>${name}</strong><span>${detail}</span></li>`;

const sentence = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "");

function Health() {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const load = () => { setFound(null); setError(null); get("/api/health").then(setFound, setError); };
  useEffect(load, []);
  return html`
    <section aria-labelledby="health-title"><h2 id="health-title">Health</h2>
      <${Problem} error=${error} />
      <p role="status">${found ? `${found.ok ? "Everything works." : "Something fails."} ${sentence(found.usable)}` : error ? "" : "Checking"}</p>
      ${found && html`<ul class="rows">${found.checks.map((one) => html`<${Check} key=${one.name} name=${one.name} state=${String(one.ok)} detail=${one.detail} />`)}</ul>
        <details><summary>The sandbox of the workers</summary><ul class="rows">${found.sandbox.map((one) => html`<${Check} key=${one.name} name=${one.name} state=${one.holds ? "true" : "null"} detail=${one.detail} />`)}</ul></details>`}
      <button onClick=${load} disabled=${!found && !error}>Check again</button>
    </section>`;
}

export function Settings() {
  const keys = useList("/api/keys");
  return html`
    <section class="desk settings">
      <header class="bar"><h1>Settings</h1></header>
      <div class="pad panels">
        <${Keys} keys=${keys} />
        <div class="stack"><${Models} version=${keys.found} /><${Caps} /><${Trust} /></div>
        <${Health} />
      </div>
    </section>`;
}
