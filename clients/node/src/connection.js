/** A program to start, or an address -> requests and their responses over one connection. */

import { spawn } from "node:child_process";
import { once } from "node:events";

const EXIT_TIMEOUT_MS = 5_000;
const STDERR_TAIL_CHARS = 500;
const INTERNAL_ERROR = -32603;

/** The server refused a request, or is gone (`code` is "SERVER_GONE"). */
export class ServerError extends Error {
  constructor(message, { code, data } = {}) {
    super(message);
    this.name = "ServerError";
    this.code = code;
    this.data = data;
  }
}

export class Connection {
  #transport;
  #waiting = new Map();
  #lastId = 0;
  #lost;
  #handlers;

  /** `handlers`: onNotification(method, params), onRequest(method, params), onLost(error). */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  async open(makeTransport) {
    this.#transport = await makeTransport({
      onMessage: (text) => this.#receive(JSON.parse(text)),
      onEnd: (reason) => this.#lose(new ServerError(reason, { code: "SERVER_GONE" })),
    });
  }

  request(method, params) {
    if (this.#lost) return Promise.reject(this.#lost);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.notify(method, params, id);
    });
  }

  notify(method, params, id) {
    this.#transport.send(JSON.stringify({ id, method, params }));
  }

  close() {
    return this.#transport.close();
  }

  #receive({ id, method, params, result, error }) {
    if (method !== undefined && id === undefined) {
      this.#handlers.onNotification(method, params ?? {});
    } else if (method !== undefined) {
      this.#answer(id, method, params ?? {});
    } else {
      const { resolve, reject } = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error) reject?.(new ServerError(error.message, error));
      else resolve?.(result);
    }
  }

  async #answer(id, method, params) {
    let answer;
    try {
      answer = { id, result: await this.#handlers.onRequest(method, params) };
    } catch (error) {
      answer = { id, error: { code: error.code ?? INTERNAL_ERROR, message: error.message } };
      if (!Number.isInteger(answer.error.code)) answer.error.code = INTERNAL_ERROR;
    }
    this.#transport.send(JSON.stringify(answer));
  }

  #lose(error) {
    this.#lost = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.#handlers.onLost(error);
  }
}

/** A server that this process starts; messages are lines of its standard streams. */
export function startServer([program, ...words], { env, cwd } = {}) {
  return async ({ onMessage, onEnd }) => {
    const server = spawn(program, words, { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
    let stderr = "";
    let rest = Buffer.alloc(0);
    server.stderr.on("data", (part) => (stderr = (stderr + part).slice(-STDERR_TAIL_CHARS)));
    // Not `readline`: it also splits at U+2028, which JSON may contain.
    server.stdout.on("data", (part) => {
      let start = 0;
      for (let end; (end = part.indexOf(0x0a, start)) !== -1; start = end + 1) {
        const line = Buffer.concat([rest, part.subarray(start, end)]).toString();
        rest = Buffer.alloc(0);
        if (line.trim()) onMessage(line);
      }
      rest = Buffer.concat([rest, part.subarray(start)]);
    });
    // The server may end before it has read everything; `onEnd` reports that.
    server.stdin.on("error", () => {});
    const exited = once(server, "close");
    exited.then(
      ([status, signal]) =>
        onEnd(`The app-server ended with ${signal ?? `status ${status}`}. ${stderr}`.trim()),
      () => {},
    );
    await once(server, "spawn").catch((error) => {
      throw new ServerError(`${program} cannot be started: ${error.message}`, {
        code: "SERVER_GONE",
      });
    });
    return {
      isLocal: true,
      send: (text) => server.stdin.write(`${text}\n`),
      async close() {
        // The end of its input asks the server to end; one that does not is stopped.
        server.stdin.end();
        const timers = ["SIGTERM", "SIGKILL"].map((signal, number) =>
          setTimeout(() => server.kill(signal), (number + 1) * EXIT_TIMEOUT_MS),
        );
        await exited;
        timers.forEach(clearTimeout);
      },
    };
  };
}

/** A server that listens on a web socket. */
export function openSocket(url, token) {
  return async ({ onMessage, onEnd }) => {
    if (typeof WebSocket === "undefined") {
      throw new Error("A url needs Node 22, or Node 20 with --experimental-websocket.");
    }
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const socket = new WebSocket(url, { headers });
    await new Promise((resolve, reject) => {
      const fail = () =>
        reject(new ServerError(`${url} cannot be reached.`, { code: "SERVER_GONE" }));
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", fail, { once: true });
    });
    socket.addEventListener("message", ({ data }) => onMessage(data));
    const closed = once(socket, "close");
    closed.then(() => onEnd("The app-server closed the connection."));
    return {
      isLocal: false,
      send: (text) => socket.send(text),
      async close() {
        socket.close();
        await closed;
      },
    };
  };
}
