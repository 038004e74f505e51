// One script of the Node client, for every app-server: its arguments are options of `connect`.
import { connect, picture } from "../../clients/node/src/index.js";

const { connectTo, model, cwd, shot } = JSON.parse(process.argv[2]);
const asked = [];
const approve = (request) => asked.push(request.kind) > 0;
const tool = {
  name: "screenshot",
  description: "Take a picture of a window.",
  schema: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
  run: ({ of }) => [`The ${of}:`, picture(shot)],
};
const seen = {};

let client = await connect({ ...connectTo, approve });
let thread = await client.thread({ tools: [tool], cwd, model });
seen.events = [];
for await (const event of thread.stream("Look at my window.", { images: [shot] })) {
  if (!["notification", "usage", "input", "item"].includes(event.type)) seen.events.push(event);
}
for await (const event of thread.stream("Go on for ever.")) if (event.type === "text") break;
seen.next = (await thread.run("Are you there?")).text;
await client.close();

client = await connect({ ...connectTo, approve });
thread = await client.resume(thread.id, { tools: [tool], cwd });
seen.resumed = (await thread.run("Still there?")).text;
await client.close();
console.log(JSON.stringify(seen));
