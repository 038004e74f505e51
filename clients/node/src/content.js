/** Texts and pictures of this program -> the parts that an app-server gets. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const SIGNATURES = [
  ["image/png", /^\x89PNG\r\n\x1a\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

class Picture {
  constructor(source, { label, detail } = {}) {
    Object.assign(this, { source, label, detail });
  }
}

/** A picture in the result of a tool: a file, or the bytes of one. */
export function picture(source, options) {
  return new Picture(source, options);
}

/** A PNG, JPEG, GIF or WebP file, or its bytes, as a data URL. */
export async function dataUrl(source) {
  const bytes = source instanceof Uint8Array ? Buffer.from(source) : await readFile(source);
  const head = bytes.subarray(0, 16).toString("latin1");
  const type = SIGNATURES.find(([, signature]) => signature.test(head))?.[0];
  if (type === undefined) throw new TypeError("This is not a PNG, JPEG, GIF or WebP picture.");
  return `data:${type};base64,${bytes.toString("base64")}`;
}

/** The input of a turn: the pictures first, then the text. */
export async function userInput(text, images, isLocal) {
  const shown = await Promise.all(
    images.map(async (image) =>
      typeof image === "string" && isLocal
        ? { type: "localImage", path: resolve(image) }
        : { type: "image", url: await dataUrl(image) },
    ),
  );
  return text ? [...shown, { type: "text", text }] : shown;
}

/** The result of a tool: text, bytes, `picture(…)`, anything that is JSON, or a list of these. */
export async function contentItems(result) {
  const parts = Array.isArray(result) && result.some(isContent) ? result : [result];
  return Promise.all(parts.map(contentItem));
}

function isContent(part) {
  return typeof part === "string" || part instanceof Picture || part instanceof Uint8Array;
}

async function contentItem(part) {
  if (typeof part === "string") return { type: "inputText", text: part };
  if (part instanceof Uint8Array) return { type: "inputImage", imageUrl: await dataUrl(part) };
  if (part instanceof Picture) {
    const { source, label, detail } = part;
    return { type: "inputImage", imageUrl: await dataUrl(source), label, detail };
  }
  return { type: "inputText", text: JSON.stringify(part ?? null) };
}
