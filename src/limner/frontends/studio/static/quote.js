// A request that costs money -> its price now. The answer to an older request is dropped.

import { useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { send } from "/static/api.js";

const WAIT_MS = 300;

// `canAsk` is false while something is missing. `again` asks once more, as for a price that changed.
export function useQuote(path, body, canAsk) {
  const [quote, setQuote] = useState({});
  const [version, setVersion] = useState(0);
  const latest = useRef(0);
  const text = JSON.stringify(body);
  useEffect(() => {
    const number = ++latest.current;
    const set = (value) => number === latest.current && setQuote(value);
    if (!canAsk) { set({}); return; }
    set({ isWaiting: true });
    const timer = setTimeout(() => {
      send("POST", path, JSON.parse(text)).then((found) => set({ found }), (error) => set({ error }));
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [text, canAsk, version]);
  return { ...quote, again: () => setVersion((now) => now + 1) };
}
