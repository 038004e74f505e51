// Conversations of every interface -> a page to read them, to continue them and to start new ones.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { get, thumbnail } from "/static/api.js";
import { Slot } from "/static/slot.js";
import { Icon } from "/static/icons.js";
import { Markdown } from "/static/markdown.js";
import { answer, call, listen } from "/static/talk_socket.js";
import { count, errorText, moment, usd } from "/static/words.js";

const HANDLE_URL = "limner://image/";
const CALLS = ["function_call", "custom_tool_call"];
const OUTPUTS = ["function_call_output", "custom_tool_call_output"];
const NANO = 1e9;
const MAX_PICTURES = 8;

// --- items ---

const partsOf = (content) => (typeof content === "string" ? [{ type: "input_text", text: content }] : content || []);
const textOf = (content) => partsOf(content).map((part) => part.text ?? part.refusal ?? "").join("");
const picturesOf = (content) => partsOf(content)
  .map((part) => part.image_url)
  .filter((url) => typeof url === "string" && url.startsWith(HANDLE_URL))
  .map((url) => url.slice(HANDLE_URL.length));

const parse = (text) => { try { return JSON.parse(text); } catch { return null; } };

function Pictures({ handles }) {
  if (!handles.length) return null;
  return html`<div class="talk-pictures">${handles.map((handle) => html`
    <a key=${handle} href=${"#/picture/" + handle}><img src=${thumbnail(handle)} alt="Picture of this conversation" loading="lazy" /></a>`)}</div>`;
}

// What a request to the model took, or a tool.
function Price({ tokens, nano }) {
  const counted = tokens ? `${count(tokens.input_tokens, "token")} in, ${tokens.output_tokens.toLocaleString()} out · ` : "";
  return html`<p class="talk-price">${tokens ? "Model" : "Tool"}: ${counted}${usd((nano || 0) / NANO)}</p>`;
}

const usagePrice = (item) => item.usage && html`<${Price} tokens=${item.usage} nano=${item.usage.cost_nano} />`;

function Call({ item, output, isRunning, isAsking }) {
  const given = parse(item.arguments ?? "") ?? { input: item.arguments ?? item.input };
  const content = output ? output.output : "";
  const value = parse(partsOf(content).find((part) => (part.text || "").startsWith("{"))?.text ?? "");
  const error = value && value.error;
  const text = textOf(content);
  const state = output ? (output.success === false || error ? "failed" : "done") : isAsking ? "waits for your answer" : isRunning ? "running" : "no result";
  return html`
    <section class="talk-call" aria-label=${"Tool " + item.name}>
      <p class="talk-tool"><span class="talk-name">${item.name}</span> <span class=${state === "failed" ? "bad" : "quiet-text"}>${state}</span></p>
      <dl>${Object.entries(given).map(([name, part]) => html`<div key=${name}><dt>${name}</dt><dd>${typeof part === "string" ? part : JSON.stringify(part)}</dd></div>`)}</dl>
      ${state === "running" && html`<progress aria-label="The tool is running"></progress>`}
      ${error ? html`<p class="problem">${errorText(error)}</p>` : html`<${Pictures} handles=${picturesOf(content)} />`}
      ${text && !error && html`<details><summary>Result</summary><pre tabindex="0">${value ? JSON.stringify(value, null, 2) : text}</pre></details>`}
      ${output && html`<${Price} nano=${output.cost_nano ?? 0} />`}
      ${usagePrice(item)}
    </section>`;
}

function Item({ item, outputs, isRunning, questions }) {
  if (CALLS.includes(item.type)) {
    const isAsking = questions.some((one) => one.itemId === item.call_id);
    return html`<${Call} item=${item} output=${outputs.get(item.call_id)} isRunning=${isRunning} isAsking=${isAsking} />`;
  }
  if (OUTPUTS.includes(item.type)) return null;
  if (item.type === "reasoning") {
    const words = (item.summary || []).map((part) => part.text).join("\n\n");
    return words ? html`<details class="talk-reasoning"><summary>Reasoning</summary><${Markdown} text=${words} /></details>` : null;
  }
  if (item.compaction !== undefined || item.type === "compaction") return html`<p class="talk-note">The conversation was summarized here.</p>`;
  if (item.type === "image_generation_call") return html`<${Pictures} handles=${picturesOf([{ image_url: item.result }])} />`;
  if ((item.type || "message") !== "message") return html`<p class="talk-note">${item.type}</p>`;
  const isUser = item.role === "user";
  return html`
    <article class=${isUser ? "talk-user" : "talk-model"} aria-label=${isUser ? "You" : "Model"}>
      ${isUser ? html`<p class="talk-words">${textOf(item.content)}</p>` : html`<${Markdown} text=${textOf(item.content)} />`}
      <${Pictures} handles=${picturesOf(item.content)} />
      ${usagePrice(item)}
    </article>`;
}

// --- one conversation ---

const EMPTY = { items: [], about: null, turn: null, draft: null, questions: [], error: "", warnings: [], isFirst: true };

// Everything that the server says about one conversation, joined with what is stored.
function useConversation(id) {
  const [state, setState] = useState(EMPTY);
  const change = (next) => setState((now) => ({ ...now, ...next(now) }));
  const join = (older, newer) => {
    const known = new Set(older.map((item) => item.id));
    return [...older, ...newer.filter((item) => !known.has(item.id))];
  };
  const read = async (before) => {
    const found = await get(`/api/conversations/${id}/items`, before == null ? {} : { before });
    const items = found.items.map(({ seq, created_ms, item }) => ({ id: `item-${seq}`, ...item, seq, created_ms }));
    change((now) => ({ items: join(items, now.items), about: found.conversation, isFirst: found.is_first }));
    return items;
  };
  const open = async () => {
    const opened = await call("thread/resume", { threadId: id, excludeTurns: true });
    const items = await read();
    const last = items.at(-1);
    const isActive = opened.thread.status.type === "active" && last;
    change((now) => ({ turn: now.turn || (isActive ? last.turn_id : null), policy: opened.approvalPolicy, error: "" }));
  };
  useEffect(() => {
    setState(EMPTY);
    if (!id) return undefined;
    const fail = (error) => change(() => ({ error: error.message }));
    // Shown at once, also if another process has the conversation open.
    read().catch(fail);
    open().catch(fail);
    const stop = listen((message) => {
      const { method, params = {} } = message;
      if (method === "lost") change(() => ({ turn: null, draft: null, questions: [], isLost: true }));
      if (method === "connected") { change(() => ({ isLost: false })); open().catch(fail); }
      if (params.threadId !== id) return;
      if (method === "turn/started") change(() => ({ turn: params.turn.id, error: "" }));
      if (method === "turn/completed")
        change(() => ({ turn: null, draft: null, error: params.turn.error?.message || (params.turn.status === "interrupted" ? "Stopped." : "") }));
      if (method === "item/agentMessage/delta")
        change(({ draft }) => ({ draft: draft?.id === params.itemId ? { ...draft, text: draft.text + params.delta } : { id: params.itemId, text: params.delta } }));
      if (method === "thread/item/stored")
        change((now) => ({ items: join(now.items, [params.item]), draft: now.draft?.id === params.item.id ? null : now.draft }));
      if (method === "thread/spend/updated") change((now) => ({ about: { ...now.about, cost_usd: params.threadCostUsd } }));
      if (method === "warning") change((now) => ({ warnings: [...now.warnings, params.message] }));
      if (method === "error" && params.willRetry) change((now) => ({ warnings: [...now.warnings, `${params.error.message} It is tried again.`] }));
      if (method.endsWith("/requestApproval")) change((now) => ({ questions: [...now.questions.filter((one) => one.id !== message.id), { id: message.id, ...params }] }));
      if (method === "serverRequest/resolved") change((now) => ({ questions: now.questions.filter((one) => one.id !== params.requestId) }));
    });
    return () => { stop(); call("thread/unsubscribe", { threadId: id }).catch(() => {}); };
  }, [id]);
  return { state, readMore: () => read(state.items[0].seq) };
}

function Approval({ question }) {
  const first = useRef(null);
  useEffect(() => { first.current?.focus(); }, []);
  const say = (decision) => () => answer(question.id, decision);
  return html`
    <section class="talk-approval" role="alertdialog" aria-label="A question for you">
      <p><strong>${question.reason || "May this be done?"}</strong></p>
      ${question.command && html`<p class="talk-command">${question.command}</p>`}
      <div class="talk-answers">
        <button ref=${first} class="main" onClick=${say("accept")}>Yes</button>
        <button onClick=${say("acceptForSession")}>Yes, and do not ask again for this here</button>
        <button onClick=${say("decline")}>No</button>
        <button class="quiet" onClick=${say("cancel")}>No, and stop</button>
      </div>
    </section>`;
}

const POLICIES = { "": "as the settings say", "on-request": "above the limit of the settings", untrusted: "before every paid call", never: "never" };

// What was chosen holds for the rest of the conversation.
const policiesOf = (current) => (current ? [...new Set(["on-request", "untrusted", current])] : ["", "untrusted"]);

function useModels() {
  const [models, setModels] = useState([]);
  useEffect(() => { call("model/list").then((found) => setModels(found.data), () => {}); }, []);
  return models;
}

const IDEAS = [
  "Draw a fox in the snow, and tell me what you drew.", "Draw a bar chart of sales: Mon 3, Tue 5, Wed 9", "Draw a harbour at dawn, then make it night.",
];

// What was written and not sent, by conversation; kept between visits of the page.
const drafts = new Map();

function Composer({ id, state, given, idea }) {
  const [text, setText] = useState(drafts.get(id) || "");
  drafts.set(id, text);
  const [pictures, setPictures] = useState(given);
  const [model, setModel] = useState("");
  const [policy, setPolicy] = useState("");
  const [error, setError] = useState("");
  const [isSending, setSending] = useState(false);
  const box = useRef();
  useEffect(() => { if (idea) { setText(idea.text); box.current.focus(); } }, [idea]);
  const models = useModels();
  const used = model || state.about?.model || models.find((one) => one.isDefault)?.id || "";
  const isRunning = state.turn !== null;
  const canSend = (text.trim() || pictures.length) && !isSending && !state.isLost;
  const input = () => [
    ...(text.trim() ? [{ type: "text", text }] : []),
    ...pictures.map((handle) => ({ type: "image", url: HANDLE_URL + handle })),
  ];
  const start = async () => {
    const terms = { ...(model ? { model } : {}), ...(policy ? { approvalPolicy: policy } : {}) };
    if (id) { await call("turn/start", { threadId: id, input: input(), ...terms }); return; }
    const { thread } = await call("thread/start", terms);
    await call("turn/start", { threadId: thread.id, input: input() });
    location.hash = "#/talk/" + thread.id;
  };
  const submit = async (event) => {
    event.preventDefault();
    if (!canSend) return;
    setSending(true);
    setError("");
    try {
      if (isRunning) await call("turn/steer", { threadId: id, expectedTurnId: state.turn, input: input() });
      else await start();
      setText("");
      setPictures([]);
    } catch (problem) { setError(problem.message); }
    setSending(false);
  };
  const key = (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); };
  const stop = () => call("turn/interrupt", { threadId: id, turnId: state.turn }).catch((problem) => setError(problem.message));
  return html`
    <form class="composer" onSubmit=${submit}>
      <label class="wide">${isRunning ? "Say more while it works" : "Message"}
        <textarea ref=${box} rows="2" value=${text} onKeyDown=${key} onInput=${(event) => setText(event.target.value)}
          placeholder=${id ? "" : "Draw a fox in the snow, and tell me what you drew."}></textarea></label>
      <div class="composer-row">
        <${Slot} label="Pictures" handles=${pictures} max=${MAX_PICTURES} change=${setPictures} />
        ${!isRunning && html`<label>Model <select value=${used} onChange=${(event) => setModel(event.target.value)}>
          ${!models.some((one) => one.id === used) && html`<option value=${used}>${used}</option>`}
          ${models.map((one) => html`<option key=${one.id} value=${one.id}>${one.id}</option>`)}
        </select></label>
        <label>Ask me <select value=${policy || state.policy || ""} onChange=${(event) => setPolicy(event.target.value)}>
          ${policiesOf(state.policy).map((one) => html`<option key=${one} value=${one} selected=${one === (policy || state.policy || "")}>${POLICIES[one]}</option>`)}
        </select></label>`}
        ${isRunning && html`<button type="button" onClick=${stop}>Stop</button>`}
        <button class="main" disabled=${!canSend}>${isRunning ? "Add" : "Send"}</button>
      </div>
      ${error && html`<p class="problem" role="alert">${error}</p>`}
    </form>`;
}

function Thread({ id, given }) {
  const { state, readMore } = useConversation(id);
  const log = useRef(null);
  const [idea, setIdea] = useState(null);
  const isAtEnd = useRef(true);
  const lastTop = useRef(0);
  const { items, about, turn, draft, questions } = state;
  // Follow what comes, unless the user has scrolled up to read.
  const follow = () => { if (isAtEnd.current && log.current) log.current.scrollTop = log.current.scrollHeight; };
  useEffect(follow, [items.length, draft?.text.length, questions.length, turn]);
  // More may have come since the scroll that this event reports: only a scroll upwards leaves the end.
  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40 || (isAtEnd.current && scrollTop >= lastTop.current);
    lastTop.current = scrollTop;
  };
  const outputs = new Map(items.filter((item) => OUTPUTS.includes(item.type)).map((item) => [item.call_id, item]));
  return html`
    <section class="talk-thread">
      <header class="bar"><a class="talk-back" href="#/talk">Conversations</a>
        <h1>${id ? about?.title || "Conversation" : "New conversation"}</h1>
        ${about && html`<p class="quiet-text">${about.model} · ${usd(about.cost_usd)}</p>`}</header>
      ${state.isLost && html`<p class="lost" role="status">The server does not answer. The page tries again.</p>`}
      <div class="talk-items" role="log" aria-label="Conversation" tabindex="0" ref=${log} onScroll=${scrolled} onLoadCapture=${follow}>
        ${!id && html`<div class="talk-start"><h2>A model talks, draws and looks at pictures here.</h2>
          <p>Every conversation of limner is in the list: continue any of them. Without a key, limner/offline answers by rules, and draws for free.</p>
          <div class="ideas">${IDEAS.map((idea) => html`<button key=${idea} onClick=${() => setIdea({ text: idea })}>${idea}</button>`)}</div></div>`}
        ${!state.isFirst && html`<button class="quiet" onClick=${readMore}>Show what came before</button>`}
        ${items.map((item) => html`<${Item} key=${item.id} item=${item} outputs=${outputs} questions=${questions} isRunning=${turn !== null && item.turn_id === turn} />`)}
        ${draft && html`<article class="talk-model" aria-label="Model"><${Markdown} text=${draft.text} /></article>`}
        ${turn !== null && !draft && !questions.length && html`<p class="talk-note" role="status">Working…</p>`}
        ${state.warnings.map((text) => html`<p class="talk-note" key=${text}>${text}</p>`)}
        ${state.error && html`<p class="problem" role="alert">${state.error}</p>`}
        ${questions.map((one) => html`<${Approval} key=${one.id} question=${one} />`)}
      </div>
      <${Composer} key=${id} id=${id} state=${state} given=${given} idea=${idea} />
    </section>`;
}

// --- the list ---

const SOURCES = { "": "limner chat", "limner-studio": "studio" };

function List({ current }) {
  const [found, setFound] = useState({ conversations: [], others: [], isLast: true });
  const [error, setError] = useState("");
  const read = async (after) => {
    try {
      const page = await get("/api/conversations", after ? { after_ms: after.updated_ms, after_id: after.id } : {});
      setFound((now) => ({
        conversations: after ? [...now.conversations, ...page.conversations] : page.conversations,
        others: after ? now.others : page.others,
        isLast: page.is_last,
      }));
    } catch (problem) { setError(problem.message); }
  };
  useEffect(() => { read(); }, [current]);
  useEffect(() => listen(({ method }) => {
    if (["turn/completed", "thread/name/updated", "thread/deleted", "connected"].includes(method)) read();
  }), []);
  const { conversations, others } = found;
  return html`
    <aside class="talk-list" aria-label="All conversations">
      <a class="button" href="#/talk/new">New conversation</a>
      ${error && html`<p class="problem" role="alert">${error}</p>`}
      <ul>${conversations.map((one) => html`<li key=${one.id}>
        <a href=${"#/talk/" + one.id} aria-current=${one.id === current ? "page" : null}>
          <span class="talk-title">${one.title || "Untitled"}</span>
          <span class="quiet-text">${moment(one.updated_ms)} · ${SOURCES[one.source] ?? one.source} · ${usd(one.cost_usd)}</span></a></li>`)}</ul>
      ${!found.isLast && html`<button class="quiet" onClick=${() => read(conversations.at(-1))}>More</button>`}
      ${others.length > 0 && html`<details><summary>${count(others.length, "session")} without a conversation</summary>
        <p class="quiet-text">Calls of commands, MCP clients and programs.</p>
        <ul>${others.map((one) => html`<li key=${one.id}><a href=${"#/session/" + one.id}>
          <span class="talk-title">${count(one.calls, "call")} · ${usd(one.cost_usd)}</span><span class="quiet-text">${one.id.slice(0, 12)}</span></a>
          <a class="talk-about" href=${"#/talk/about/" + one.id}>Talk about its pictures</a></li>`)}</ul></details>`}
    </aside>`;
}

// The newest pictures of a session that had no conversation, as the start of one.
function About({ session }) {
  const [handles, setHandles] = useState(null);
  useEffect(() => {
    get("/api/pictures", { session, limit: MAX_PICTURES }).then(
      (found) => setHandles(found.pictures.map((one) => one.handle)), () => setHandles([]));
  }, [session]);
  return handles && html`<${Thread} id=${null} given=${handles} />`;
}

export function Talk({ rest }) {
  const [first, second] = rest;
  const id = first && first !== "new" && first !== "about" ? first : null;
  return html`
    <div class=${first ? "talk is-open" : "talk"}>
      <${List} current=${id} />
      ${first === "about" ? html`<${About} key=${second} session=${second} />` : html`<${Thread} key=${id || "new"} id=${id} given=${[]} />`}
    </div>`;
}
