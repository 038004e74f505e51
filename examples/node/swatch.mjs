// Talk to limner's app-server, with a tool of your own that answers with a picture.
// In your project: npm install PATH/TO/limner/clients/node, and import from "limner-client".
import { connect, picture } from "../../clients/node/src/index.js";

const swatch = {
  name: "swatch",
  description: "Paint a square in one colour.",
  schema: {
    type: "object",
    properties: { colour: { type: "string", enum: ["teal", "coral"] } },
    required: ["colour"],
  },
  run: ({ colour }) => [
    `A square of ${colour}:`,
    picture(new URL(`${colour}.png`, import.meta.url)),
  ],
};

const client = await connect();
const thread = await client.thread({ tools: [swatch] });
for await (const event of thread.stream(process.argv[2] ?? "Draw a fox in the snow.")) {
  if (event.type === "text") process.stdout.write(event.text);
  if (event.type === "tool_finished") event.images.forEach(({ path }) => console.log(path));
  if (event.type === "turn_ended") console.log(`\n${event.status}`);
}
await client.close();
