// The sessions of every interface -> their names, for lists and filters.

import { useEffect, useState } from "/static/vendor/preact-htm.js";
import { get } from "/static/api.js";
import { onRun } from "/static/runs.js";
import { count } from "/static/words.js";

export const shortId = (id) => id.slice(0, 8);

// A conversation has a title; another session is known by its calls.
export function useSessions() {
  const [names, setNames] = useState(new Map());
  const load = () => {
    get("/api/conversations").then(({ conversations, others }) => setNames(new Map([
      ...conversations.map((one) => [one.id, one.title || "Untitled"]),
      ...others.map((one) => [one.id, `${count(one.calls, "call")} of ${shortId(one.id)}`]),
    ])), () => {});
  };
  useEffect(load, []);
  onRun((event) => { if (["done", "restarted"].includes(event)) load(); });
  return names;
}
