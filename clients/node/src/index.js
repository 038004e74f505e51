/** `connect` -> a client of one app-server: threads and turns out, tools in. */

import { isApproval, respond } from "./approvals.js";
import { Connection, openSocket, ServerError, startServer } from "./connection.js";
import { contentItems, picture, userInput } from "./content.js";
import { readEnd, readEvent } from "./events.js";

export { picture, ServerError };

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const CLIENT_INFO = { name: "limner-client", title: null, version: "0.1.0" };

/** Start an app-server, or connect to one at `url`. */
export async function connect(options = {}) {
  const { command = ["limner", "app-server"], env, cwd, url, token, approve } = options;
  const client = new Client(approve ?? (() => false), url === undefined);
  await client.open(url === undefined ? startServer(command, { env, cwd }) : openSocket(url, token));
  return client;
}

class Client {
  #approve;
  #connection;
  #threads = new Map();

  constructor(approve, isLocal) {
    this.#approve = approve;
    this.isLocal = isLocal;
    this.#connection = new Connection({
      onNotification: (method, params) =>
        this.#threads.get(params.threadId)?.onNotification(method, params),
      onRequest: (method, params) => this.#onRequest(method, params),
      onLost: (error) => this.#threads.forEach((thread) => thread.onLost(error)),
    });
  }

  async open(makeTransport) {
    await this.#connection.open(makeTransport);
    const { userAgent } = await this.request("initialize", {
      clientInfo: CLIENT_INFO,
      capabilities: {
        experimentalApi: true, // tools of a client are experimental in Codex
        optInNotificationMethods: ["thread/spend/updated"], // of limner alone
      },
    });
    this.server = userAgent;
    this.#connection.notify("initialized");
  }

  thread(options = {}) {
    return this.#open("thread/start", options);
  }

  resume(threadId, options = {}) {
    // A history can be hundreds of megabytes, and this client does not read it.
    return this.#open("thread/resume", { threadId, excludeTurns: true, ...options });
  }

  fork(threadId, options = {}) {
    return this.#open("thread/fork", { threadId, excludeTurns: true, ...options });
  }

  async list(params = {}) {
    return (await this.request("thread/list", params)).data;
  }

  request(method, params = {}) {
    return this.#connection.request(method, params);
  }

  close() {
    return this.#connection.close();
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.close();
  }

  async #open(method, { tools = [], ...params }) {
    const thread = new Thread(this, tools);
    // Before the request: a resumed thread may call a tool at once.
    if (method === "thread/resume") this.#threads.set(params.threadId, thread);
    const specs = tools.map(({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      inputSchema: schema ?? { type: "object", properties: {} },
    }));
    if (specs.length) params.dynamicTools = specs;
    const answer = await this.request(method, params);
    thread.id = answer.thread.id;
    thread.model = answer.model;
    this.#threads.set(thread.id, thread);
    return thread;
  }

  #onRequest(method, params) {
    if (isApproval(method)) return respond(method, params, this.#approve);
    if (method !== "item/tool/call") {
      throw new ServerError(`This client does not answer ${method}.`, { code: METHOD_NOT_FOUND });
    }
    const thread = this.#threads.get(params.threadId);
    if (thread === undefined) {
      throw new ServerError("This client has no such thread.", { code: INVALID_PARAMS });
    }
    return thread.callTool(params);
  }
}

class Thread {
  #client;
  #tools;
  #turn = null;

  constructor(client, tools) {
    this.#client = client;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  async run(text, options) {
    for await (const event of this.stream(text, options)) {
      if (event.type === "turn_ended") return event;
    }
  }

  async *stream(text, { images = [], ...options } = {}) {
    if (this.#turn !== null) throw new Error("A turn is running.");
    const turn = (this.#turn = new Turn());
    try {
      const input = await userInput(text, images, this.#client.isLocal);
      const params = { threadId: this.id, input, ...options };
      turn.id = (await this.#client.request("turn/start", params)).turn.id;
      yield* turn.events();
    } finally {
      // The caller has left the loop: the turn ends, and the next one can start.
      if (turn.id !== undefined && !turn.isOver) {
        await this.interrupt().catch(() => {}); // it may have just ended
        await turn.ended;
      }
      this.#turn = null;
    }
  }

  async steer(text, { images = [] } = {}) {
    const input = await userInput(text, images, this.#client.isLocal);
    const params = { threadId: this.id, expectedTurnId: this.#turn?.id ?? "", input };
    await this.#client.request("turn/steer", params);
  }

  async interrupt() {
    if (this.#turn?.id === undefined || this.#turn.isOver) return;
    const params = { threadId: this.id, turnId: this.#turn.id };
    await this.#client.request("turn/interrupt", params);
  }

  onNotification(method, params) {
    this.#turn?.receive(method, params);
  }

  onLost(error) {
    this.#turn?.fail(error);
  }

  async callTool({ tool, arguments: given, callId, turnId }) {
    try {
      const known = this.#tools.get(tool);
      if (known === undefined) throw new Error(`There is no tool ${tool}.`);
      const result = await known.run(given ?? {}, { callId, turnId, threadId: this.id });
      return { contentItems: await contentItems(result), success: true };
    } catch (error) {
      // The model reads why its call failed, and may try another way.
      const text = String(error?.message ?? error);
      return { contentItems: [{ type: "inputText", text }], success: false };
    }
  }
}

/** The events of one turn, in the order in which they arrive. */
class Turn {
  isOver = false;
  #events = [];
  #items = [];
  #spend;
  #error;
  #wake = () => {};
  #end;
  ended = new Promise((resolve) => (this.#end = resolve));

  receive(method, params) {
    if (this.isOver) return;
    if (method === "thread/spend/updated") this.#spend = params;
    if (method === "item/completed") this.#items.push(params.item);
    if (method === "turn/completed") {
      const items = this.#items.concat(params.turn.items ?? []);
      this.#events.push(readEnd(params.turn, items, this.#spend));
      this.#finish();
    } else {
      const event = readEvent(method, params);
      if (event !== undefined) this.#events.push(event);
    }
    this.#wake();
  }

  fail(error) {
    if (this.isOver) return;
    this.#error = error;
    this.#finish();
    this.#wake();
  }

  async *events() {
    for (;;) {
      while (this.#events.length) yield this.#events.shift();
      if (this.#error) throw this.#error;
      if (this.isOver) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  #finish() {
    this.isOver = true;
    this.#end();
  }
}
