// The ledger -> sums, a chart of days, tables, and the actions for open jobs.

import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { get, send, thumbnail } from "/static/api.js";
import { Batches } from "/static/batches.js";
import { confirmed, useFocusOfField } from "/static/dialog.js";
import { follow, onRun } from "/static/runs.js";
import { useSessions } from "/static/sessions.js";
import { amount, count, errorText, moment, usd } from "/static/words.js";

const DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;

// The last days without gaps, the oldest first.
const lastDays = ({ today, by_day }) => {
  const spent = new Map(by_day.map((one) => [one.name, one]));
  const end = Date.parse(today);
  return Array.from({ length: DAYS }, (_, index) => {
    const name = new Date(end - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10);
    return spent.get(name) || { name, cost_usd: 0, calls: 0 };
  });
};

function Chart({ report }) {
  const days = lastDays(report);
  const cap = report.caps.day_usd;
  const most = Math.max(...days.map((one) => one.cost_usd), cap || 0);
  const share = (sum) => (most ? `${(100 * sum) / most}%` : "0%");
  const said = (one) => `${one.name}: ${amount(one.cost_usd)}, ${count(one.calls, "call")}`;
  return html`
    <figure class="chart">
      <figcaption>Spend of the last ${DAYS} days${cap ? `, the line is the cap of a day (${usd(cap)})` : ""}</figcaption>
      <div class="plot" role="img" aria-label=${most ? `Spend by day, at most ${usd(most)} a day` : "Nothing was spent"}>
        <div class="scale"><span>${amount(most)}</span>${most > 0 && html`<span>${usd(most / 2)}</span><span>$0</span>`}</div>
        <div class="bars">
          ${days.map((one) => html`<div key=${one.name} class="bar-slot" title=${said(one)}>
            <span class=${one.calls ? "bar-of-day" : ""} style=${{ height: share(one.cost_usd) }}></span></div>`)}
          ${cap && html`<div class="cap" style=${{ bottom: share(cap) }}></div>`}
        </div>
        <div class="days">${days.filter((_, index) => index % 7 === 1).map((one) => html`<span key=${one.name}>${one.name.slice(5)}</span>`)}</div>
      </div>
    </figure>`;
}

const Sum = ({ name, amount, note }) => html`<div class="sum"><dt>${name}</dt><dd>${amount}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;

function Parts({ title, parts, most, link, names }) {
  if (!parts.length) return null;
  return html`
    <section class="parts"><h2>${title}</h2>
      <table><thead><tr><th>Name</th><th class="number">Calls</th><th class="number">Cost</th></tr></thead>
      <tbody>${parts.slice(0, 12).map((one) => html`<tr key=${one.name}>
        <td><div class="meter"><span style=${{ width: `${(100 * one.cost_usd) / (most || 1)}%` }}></span></div>${link ? html`<a class="cut" href=${link + one.name}>${names.get(one.name) || one.name.slice(0, 12)}</a>` : one.name}</td>
        <td class="number">${one.calls.toLocaleString()}</td><td class="number">${usd(one.cost_usd)}</td></tr>`)}</tbody></table>
    </section>`;
}

const byProvider = (models) => {
  const sums = new Map();
  for (const one of models) {
    const name = one.name.split("/")[0];
    const sum = sums.get(name) || { name, cost_usd: 0, calls: 0 };
    sums.set(name, { name, cost_usd: sum.cost_usd + one.cost_usd, calls: sum.calls + one.calls });
  }
  return [...sums.values()].sort((a, b) => b.cost_usd - a.cost_usd);
};

function Job({ job, act }) {
  const [price, setPrice] = useState(null);
  const { button, field } = useFocusOfField(price !== null);
  const settle = (event) => { event.preventDefault(); act(`/api/jobs/${job.id}/settle`, { cost_usd: price }); };
  const forget = async () => {
    const text = "It is closed at its quoted price, and the bytes that are here are deleted.";
    if (await confirmed({ title: "Forget the job?", text, yes: "Forget" })) act(`/api/jobs/${job.id}/forget`);
  };
  return html`
    <tr><td>${moment(job.created_ms)}</td><td>${job.provider} · ${job.model}<br /><code>${job.id}</code></td><td>${job.state}</td>
      <td class="number">${usd(job.quoted_usd)}</td>
      <td class="actions">
        ${job.state !== "waiting" && html`
          <button onClick=${() => act(`/api/jobs/${job.id}/recover`)}>Recover</button>
          ${price === null
            ? html`<button ref=${button} onClick=${() => setPrice("")}>Settle</button>`
            : html`<form onSubmit=${settle} onKeyDown=${(event) => event.key === "Escape" && setPrice(null)}><input ref=${field} aria-label="What the provider charged, in dollars" placeholder="0.04" inputmode="decimal" value=${price} onInput=${(event) => setPrice(event.target.value)} /><button class="main" disabled=${!price.trim()}>Settle</button></form>`}
          <button onClick=${forget}>Forget</button>`}
      </td></tr>`;
}

function Jobs({ jobs, changed }) {
  const [error, setError] = useState(null);
  const act = async (path, body) => {
    setError(null);
    try {
      const answer = await send("POST", path, body);
      if (answer.state) follow(answer);
      changed();
    } catch (problem) { setError(problem); }
  };
  return html`
    <section><h2>Open jobs</h2>
      ${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}
      ${jobs.length === 0
        ? html`<p class="quiet-text">No job is open. What was sent has been received or closed.</p>`
        : html`<div class="wide-table"><table><thead><tr><th>Sent</th><th>Provider and job</th><th>State</th><th class="number">Quoted</th><th>Actions</th></tr></thead>
          <tbody>${jobs.map((job) => html`<${Job} key=${job.id} job=${job} act=${act} />`)}</tbody></table></div>
          <p class="quiet-text">Recover asks the provider and never pays again. Settle closes the job at the price of your account there. Forget closes it at the quoted price.</p>`}
    </section>`;
}

function Calls({ calls }) {
  if (!calls.length) return null;
  return html`
    <section><h2>Last calls</h2><div class="wide-table"><table>
      <thead><tr><th>Picture</th><th>When</th><th>Tool</th><th>Model</th><th>State</th><th class="number">Cost</th></tr></thead>
      <tbody>${calls.map((call) => html`<tr key=${call.id}>
        <td>${call.picture && html`<a href=${"#/picture/" + call.picture} aria-label="Open the picture"><img class="tiny" src=${thumbnail(call.picture)} alt="" width="40" height="40" /></a>`}</td>
        <td>${moment(call.created_ms)}</td><td>${call.tool}</td><td>${call.provider}/${call.model}</td>
        <td>${call.state}${call.error_code ? ` · ${call.error_code}` : ""}</td><td class="number">${usd(call.cost_usd)}</td></tr>`)}</tbody>
    </table></div></section>`;
}

export function Money() {
  const [report, setReport] = useState(null);
  const [jobs, setJobs] = useState([]);
  const sessions = useSessions();
  const [error, setError] = useState(null);
  const load = () => {
    get("/api/money", { limit: 60 }).then(setReport, setError);
    get("/api/jobs").then((found) => setJobs(found.jobs), setError);
  };
  useEffect(load, []);
  onRun((event) => { if (["done", "failed", "restarted"].includes(event)) load(); });
  if (!report) return html`<section class="desk">${error && html`<p class="problem" role="alert">${errorText(error)}</p>`}</section>`;
  const { caps } = report;
  const left = caps.day_usd === null ? "no cap for a day" : `${usd(Math.max(0, caps.day_usd - report.today_usd))} left of ${usd(caps.day_usd)}`;
  const providers = byProvider(report.by_model);
  return html`
    <section class="desk money">
      <header class="bar"><h1>Money</h1></header>
      <div class="pad">
        <dl class="sums">
          <${Sum} name="In all" amount=${amount(report.total_usd)} note=${report.unknown_usd ? `${usd(report.unknown_usd)} of it may not have been charged` : ""} />
          <${Sum} name="Today (UTC)" amount=${amount(report.today_usd)} note=${left} />
          <${Sum} name="In flight" amount=${amount(report.in_flight_usd)} note="reserved for calls that go on" />
          <${Sum} name="Caps" amount=${caps.call_usd === null ? "none" : usd(caps.call_usd)} note=${`for a call; ${caps.session_usd === null ? "none" : usd(caps.session_usd)} for a session`} />
        </dl>
        <${Chart} report=${report} />
        <${Batches} />
        <${Jobs} jobs=${jobs} changed=${load} />
        <div class="columns">
          <${Parts} title="By provider" parts=${providers} most=${providers[0] && providers[0].cost_usd} />
          <${Parts} title="By model" parts=${report.by_model} most=${report.by_model[0] && report.by_model[0].cost_usd} />
          <${Parts} title="By session, the last used first" parts=${report.by_session} link="#/session/" names=${sessions} most=${Math.max(...report.by_session.map((one) => one.cost_usd), 0)} />
        </div>
        <${Calls} calls=${report.recent} />
      </div>
    </section>`;
}
