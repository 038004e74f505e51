// Orders on stdin -> answers on stdout: the upstream package's own resize function under bun.
//
// The same three orders as `fit_peers.py` serves, one JSON object on a line each. Only `fit` is
// measured, so the base64 that the function wants is made before it, by `load`.

const [modulePath] = process.argv.slice(2);
const { resizeImage } = await import(modulePath);
// The quality of the seed; later versions ask for 80.
const OPTIONS = { jpegQuality: 75 };

let picture = null;
let fitted = null;

const ORDERS = {
  async load({ path }) {
    fitted = null;
    const bytes = await Bun.file(path).bytes();
    picture = { type: "image", data: Buffer.from(bytes).toString("base64"), mimeType: "" };
    return {};
  },
  async fit() {
    fitted = await resizeImage(picture, OPTIONS);
    if (fitted.decodeFailed) throw new Error("not decodable, the original is sent");
    return { mime: fitted.mimeType, width: fitted.width, height: fitted.height };
  },
  async save({ path }) {
    await Bun.write(path, fitted.buffer);
    return {};
  },
};

for await (const line of console) {
  if (!line) break; // how bun shows the end
  const order = JSON.parse(line);
  let answer;
  try {
    answer = await ORDERS[order.do](order);
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
