// Be a client of `limner app-server` in plain Node: your tool answers with a picture.
//
//   node app-server-client.mjs draw a red fox in the snow

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { deflateSync } from "node:zlib";

const words = process.argv.slice(2).join(" ") || "draw a red fox in the snow";
const colours = { red: [220, 50, 47], gold: [230, 180, 30], teal: [0, 128, 128] };
const tools = [
  {
    type: "function",
    name: "swatch",
    description: "Paint a square of one colour, and show it.",
    inputSchema: {
      type: "object",
      properties: { colour: { type: "string", enum: Object.keys(colours) } },
      required: ["colour"],
    },
  },
];

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

/** A square of one colour. */
function png(colour, edge = 64) {
  const header = Buffer.from([0, 0, 0, edge, 0, 0, 0, edge, 8, 2, 0, 0, 0]);
  const row = [0, ...Array.from({ length: edge }, () => colour).flat()];
  const pixels = deflateSync(Buffer.from(Array.from({ length: edge }, () => row).flat()));
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const chunks = [chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]);
}

/** The answer of the tool: words, and a picture that the model sees. */
function swatch({ colour }) {
  const imageUrl = `data:image/png;base64,${png(colours[colour]).toString("base64")}`;
  return {
    contentItems: [
      { type: "inputText", text: `A square of ${colour}:` },
      { type: "inputImage", imageUrl },
    ],
    success: true,
  };
}

const server = spawn("limner", ["app-server"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();

function send(message) {
  server.stdin.write(`${JSON.stringify(message)}\n`);
}

function ask(method, params) {
  const id = waiting.size + 1;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

createInterface({ input: server.stdout }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) {
    if (error) waiting.get(id).reject(new Error(error.message));
    else waiting.get(id).resolve(result);
  } else if (method === "item/tool/call") {
    send({ id, result: swatch(params.arguments) });
  } else if (method === "item/agentMessage/delta") {
    process.stdout.write(params.delta);
  } else if (method === "item/completed" && params.item.savedPath) {
    console.log(params.item.savedPath); // a picture that limner made
  } else if (method === "turn/completed") {
    console.log(`\n${params.turn.status}`);
    server.stdin.end(); // the server ends when nobody talks to it any more
  }
});

await ask("initialize", {
  clientInfo: { name: "example", version: "1" },
  capabilities: { experimentalApi: true }, // tools of a client are an experiment upstream
});
send({ method: "initialized" });
const { thread } = await ask("thread/start", { dynamicTools: tools });
await ask("turn/start", { threadId: thread.id, input: [{ type: "text", text: words }] });
