/** The client against a scripted app-server. */

import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect, picture, ServerError } from "../src/index.js";

const SERVER = fileURLToPath(new URL("server.js", import.meta.url));
const PNG = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1");
const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const JPEG = Buffer.from("\xff\xd8\xff\xe0", "latin1");

let client;
let approvals;

beforeEach(async () => {
  approvals = [];
  client = await connect({
    command: [process.execPath, SERVER],
    approve: (request) => approvals.push(request) > 0,
  });
});

afterEach(() => client.close());

async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

test("a turn yields its events, and its last event has text and cost", async () => {
  const thread = await client.thread({ model: "m" });
  assert.equal(client.server, "scripted/1");
  assert.equal(thread.id, "thread-1");
  const events = await all(thread.stream("hello"));
  assert.deepEqual(
    events.filter(({ type }) => type !== "notification"),
    [
      { type: "turn_started", turn: "turn-1" },
      { type: "text", item_id: "m", text: "A \u2028 line" },
      { type: "item", item: { type: "agentMessage", id: "m", text: "Done." } },
      {
        type: "turn_ended",
        turn: "turn-1",
        status: "completed",
        text: "Done.",
        cost_usd: 0.01,
        session_usd: 0.03,
      },
    ],
  );
});

test("a tool returns texts and pictures, from bytes and from a file", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "limner-")), "shot.png");
  await writeFile(file, PNG);
  const seen = [];
  const shot = {
    name: "shot",
    description: "Take a picture.",
    run(args, call) {
      seen.push([args, call]);
      return ["The window:", PNG, JPEG, picture(file, { label: "again", detail: "low" })];
    },
  };
  const thread = await client.thread({ tools: [shot] });
  const events = await all(thread.stream("look"));
  assert.deepEqual(seen, [
    [{ of: "window" }, { callId: "c1", turnId: "turn-1", threadId: "thread-1" }],
  ]);
  assert.deepEqual(JSON.parse(events.at(-1).text), {
    contentItems: [
      { type: "inputText", text: "The window:" },
      { type: "inputImage", imageUrl: PNG_URL },
      { type: "inputImage", imageUrl: "data:image/jpeg;base64,/9j/4A==" },
      { type: "inputImage", imageUrl: PNG_URL, label: "again", detail: "low" },
    ],
    success: true,
  });
  assert.deepEqual(
    events.filter(({ type }) => type.startsWith("tool")),
    [
      { type: "tool_started", call_id: "c1", name: "shot", arguments: { of: "window" } },
      {
        type: "tool_finished",
        call_id: "c1",
        name: "shot",
        ok: true,
        duration_ms: 5,
        value: "The window:",
        images: [],
      },
    ],
  );
});

for (const [name, run, text, success] of [
  ["an object is JSON", () => ({ a: 1 }), '{"a":1}', true],
  ["a list without content is JSON", () => [1, 2], "[1,2]", true],
  ["nothing is null", () => undefined, "null", true],
  ["an error is for the model", () => Promise.reject(new Error("No window.")), "No window.", false],
  ["bytes must be a picture", () => Buffer.from("x"), /not a PNG/, false],
]) {
  test(`the output of a tool: ${name}`, async () => {
    const thread = await client.thread({ tools: [{ name: "shot", description: "Shoot.", run }] });
    const { contentItems, success: ok } = JSON.parse((await thread.run("look")).text);
    assert.equal(ok, success);
    assert.match(contentItems[0].text, text instanceof RegExp ? text : new RegExp(`^${escape(text)}$`));
  });
}

function escape(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

test("a tool that the client does not have fails", async () => {
  const thread = await client.thread();
  const { success } = JSON.parse((await thread.run("look")).text);
  assert.equal(success, false);
});

test("the options of a thread reach the server, and its tools as dynamicTools", async () => {
  const schema = { type: "object", properties: { of: { type: "string" } } };
  const shot = { name: "shot", description: "Shoot.", schema, run: () => "" };
  const config = { "budget.session_usd": 1 };
  const spec = { type: "function", name: "shot", description: "Shoot.", inputSchema: schema };
  const started = await client.thread({ model: "m", config, tools: [shot] });
  assert.deepEqual(JSON.parse(started.model), { model: "m", config, dynamicTools: [spec] });
  const resumed = await client.resume("thread-1", { tools: [shot] });
  assert.deepEqual(JSON.parse(resumed.model), {
    threadId: "thread-1",
    excludeTurns: true,
    dynamicTools: [spec],
  });
  assert.deepEqual(await client.list(), [{ id: "thread-1" }]);
});

test("pictures of the user come before the text", async () => {
  const thread = await client.thread();
  const { text } = await thread.run("what is this?", { images: ["/fox.png", PNG] });
  assert.deepEqual(JSON.parse(text), [
    { type: "localImage", path: "/fox.png" },
    { type: "image", url: PNG_URL },
    { type: "text", text: "what is this?" },
  ]);
});

test("the user is asked, and the answer reaches the server", async () => {
  const thread = await client.thread();
  assert.equal((await thread.run("ask")).text, '{"decision":"accept"}');
  assert.equal(approvals[0].kind, "file_change");
  assert.equal(approvals[0].text, "Write fox.png?");
  assert.equal(approvals[0].threadId, "thread-1");
});

test("without approve the answer is no", async () => {
  const other = await connect({ command: [process.execPath, SERVER] });
  const thread = await other.thread();
  assert.equal((await thread.run("ask")).text, '{"decision":"decline"}');
  await other.close();
});

test("break interrupts the turn, and the next turn works", async () => {
  const thread = await client.thread();
  for await (const event of thread.stream("wait")) if (event.type === "text") break;
  const { turn, status } = await thread.run("hello");
  assert.deepEqual([turn, status], ["turn-2", "completed"]);
});

test("a second turn at the same time is refused", async () => {
  const thread = await client.thread();
  const events = thread.stream("wait");
  await events.next();
  await assert.rejects(thread.run("hello"), /A turn is running/);
  await events.return();
});

test("a request that the server refuses rejects with its message", async () => {
  await assert.rejects(client.request("no/such"), (error) => {
    assert.ok(error instanceof ServerError);
    assert.deepEqual([error.code, error.message], [-32600, "no no/such"]);
    return true;
  });
});

test("a server that dies ends the turn with its last words", async () => {
  const thread = await client.thread();
  await assert.rejects(thread.run("die"), {
    code: "SERVER_GONE",
    message: "The app-server ended with status 3. out of paint",
  });
  await assert.rejects(thread.run("hello"), { code: "SERVER_GONE" });
});

test("a program that does not exist is reported", async () => {
  await assert.rejects(connect({ command: ["no-such-program"] }), /cannot be started/);
});
