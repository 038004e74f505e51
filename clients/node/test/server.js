/**
 * A scripted app-server for the tests: requests on standard input -> scripted messages.
 *
 * It records the messages in the folder MESSAGES, if there is one, to check them against schemas.
 */

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

function record(direction, line) {
  const file = `${process.env.MESSAGES}/${process.pid}-0.client`;
  if (process.env.MESSAGES)
    appendFileSync(file, `${direction}${Buffer.byteLength(line)}\n${line}\n`);
}

function send(message) {
  const line = JSON.stringify(message);
  record(">", line);
  process.stdout.write(`${line}\n`);
}

const threadId = "thread-1";
let turns = 0;
let asked = 0;
const waiting = new Map();

function notify(method, params) {
  send({ method, params: { threadId, ...params } });
}

function call(method, params) {
  const id = `server-${++asked}`;
  send({ id, method, params: { threadId, ...params } });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function end(turnId, status = "completed", text = "Done.") {
  notify("item/completed", { item: { type: "agentMessage", id: "m", text }, turnId });
  notify("thread/spend/updated", { turnId, turnCostUsd: 0.01, threadCostUsd: 0.03 });
  notify("turn/completed", { turn: { id: turnId, status, items: [], error: null } });
}

/** What the model does, by the text of the user. */
const stories = {
  async hello(turnId) {
    notify("item/agentMessage/delta", { itemId: "m", delta: "A \u2028 line", turnId });
    end(turnId);
  },
  async look(turnId) {
    const item = { type: "dynamicToolCall", id: "c1", tool: "shot", arguments: { of: "window" } };
    notify("item/started", { item, turnId });
    const params = { callId: "c1", turnId, tool: "shot", arguments: item.arguments };
    const { result } = await call("item/tool/call", params);
    const done = { ...item, ...result, status: "completed", durationMs: 5 };
    notify("item/completed", { item: done, turnId });
    end(turnId, "completed", JSON.stringify(result));
  },
  async ask(turnId) {
    const method = "item/fileChange/requestApproval";
    const { result } = await call(method, { turnId, reason: "Write fox.png?" });
    end(turnId, "completed", JSON.stringify(result));
  },
  async wait(turnId) {
    notify("item/agentMessage/delta", { itemId: "m", delta: "…", turnId });
  },
  async die() {
    process.stderr.write("out of paint\n", () => process.exit(3));
  },
};

const methods = {
  initialize: () => ({ userAgent: "scripted/1" }),
  "thread/start": (params) => ({ thread: { id: threadId }, model: JSON.stringify(params) }),
  "thread/resume": (params) => ({ thread: { id: params.threadId }, model: JSON.stringify(params) }),
  "thread/list": () => ({ data: [{ id: threadId }] }),
  "turn/start": ({ input }) => {
    const id = `turn-${++turns}`;
    const text = input.at(-1).text;
    setImmediate(() => {
      notify("turn/started", { turn: { id } });
      (stories[text] ?? ((turnId) => end(turnId, "completed", JSON.stringify(input))))(id);
    });
    return { turn: { id } };
  },
  "turn/interrupt": ({ turnId }) => {
    setImmediate(() => end(turnId, "interrupted"));
    return {};
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  record("<", line);
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) waiting.get(id)({ result, error });
  else if (method in methods) send({ id, result: methods[method](params) });
  else if (id !== undefined) send({ id, error: { code: -32600, message: `no ${method}` } });
});
