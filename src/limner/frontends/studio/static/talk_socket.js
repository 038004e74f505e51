// The web socket of the studio -> requests to the app-server, its notifications and its questions.

const CLIENT = {
  clientInfo: { name: "limner-studio", version: "1" },
  capabilities: {
    optInNotificationMethods: ["thread/item/stored", "thread/spend/updated"],
    // The stored items say the same, without the bytes of the pictures.
    optOutNotificationMethods: ["item/started", "item/completed", "account/rateLimits/updated"],
  },
};
const MAX_WAIT_MS = 10000;
const GONE = "The server does not answer.";

const listeners = new Set();
const waiting = new Map();
let socket = null;
let ready = null;
let number = 0;
let wait_ms = 500;

const tell = (message) => { for (const listener of listeners) listener(message); };

function post(message) {
  socket.send(JSON.stringify(message));
}

function ask(method, params) {
  const id = ++number;
  // Between two attempts to connect there is no socket.
  if (!socket) return Promise.reject(new Error(GONE));
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    post({ id, method, params });
  });
}

function receive(event) {
  const message = JSON.parse(event.data);
  if (message.method) { tell(message); return; }
  const { resolve, reject } = waiting.get(message.id) || {};
  waiting.delete(message.id);
  if (!resolve) return;
  if (message.error) reject(new Error(message.error.message));
  else resolve(message.result);
}

function open() {
  ready = new Promise((resolve) => {
    const address = new URL("/api/conversations/socket", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const opened = new WebSocket(address);
    opened.onmessage = receive;
    opened.onopen = async () => {
      socket = opened;
      await ask("initialize", CLIENT);
      wait_ms = 500;
      resolve();
      tell({ method: "connected" });
    };
    opened.onclose = () => {
      socket = null;
      for (const { reject } of waiting.values()) reject(new Error(GONE));
      waiting.clear();
      tell({ method: "lost" });
      setTimeout(() => { open(); ready.then(resolve); }, wait_ms);
      wait_ms = Math.min(MAX_WAIT_MS, wait_ms * 2);
    };
  });
}

export async function call(method, params = {}) {
  if (ready === null) open();
  await ready;
  return ask(method, params);
}

export const answer = (id, decision) => socket && post({ id, result: { decision } });

export function listen(listener) {
  listeners.add(listener);
  if (ready === null) open();
  return () => listeners.delete(listener);
}
