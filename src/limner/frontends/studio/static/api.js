// Requests to the server -> JSON, or an Error with the server's sentence.

export class Failed extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint, status, details: error });
  }
}

async function ask(path, options) {
  try { return await fetch(path, options); } catch { throw new Failed({ message: "The server does not answer." }, 0); }
}

async function read(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Failed(body.error || { message: `The server answered ${response.status}.` }, response.status);
}

const query = (fields) => {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value != null);
  return given.length ? "?" + new URLSearchParams(given) : "";
};

export const get = async (path, fields = {}) => read(await ask(path + query(fields)));

const sendJson = (method, path, body) =>
  ask(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

export const send = async (method, path, body = {}) => read(await sendJson(method, path, body));

// A file that the server makes -> an address of its bytes, to be revoked.
export async function fileUrl(path, body) {
  const response = await sendJson("POST", path, body);
  return response.ok ? URL.createObjectURL(await response.blob()) : read(response);
}

// A file that the server makes -> the browser saves it.
export async function save(path, body, name) {
  const url = await fileUrl(path, body);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export const upload = async (file) =>
  read(await ask("/api/pictures" + query({ name: file.name }), { method: "POST", body: file }));

export const uploadMask = async (handle, blob) =>
  read(await ask(`/api/pictures/${handle}/masks`, { method: "POST", body: blob }));

export const isHandle = (text) => /^[0-9a-f]{64}$/.test(text || "");
export const thumbnail = (handle) => `/api/pictures/${handle}/thumbnail`;
export const file = (handle) => `/api/pictures/${handle}/file`;
export const download = (handle) => `/api/pictures/${handle}/file?save=true`;
