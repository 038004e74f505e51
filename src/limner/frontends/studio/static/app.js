// The address after # -> one page, inside the frame that all pages share.

import { html, render, useEffect, useState } from "/static/vendor/preact-htm.js";
import { Gallery } from "/static/gallery.js";
import { PicturePage } from "/static/picture.js";
import { Draw } from "/static/draw.js";
import { Compare } from "/static/compare.js";
import { Inspect } from "/static/inspect.js";
import { Money } from "/static/money.js";
import { Settings } from "/static/settings.js";
import { Talk } from "/static/talk.js";
import { Tray } from "/static/runs.js";
import { Icon } from "/static/icons.js";

const PAGES = [
  { path: "", title: "Gallery", icon: "gallery", page: Gallery },
  { path: "draw", title: "Draw", icon: "draw", page: Draw },
  { path: "talk", title: "Talk", icon: "talk", page: Talk },
  { path: "inspect", title: "Inspect", icon: "zoom", page: Inspect },
  { path: "compare", title: "Compare", icon: "compare", page: Compare },
  { path: "money", title: "Money", icon: "money", page: Money },
  { path: "settings", title: "Settings", icon: "settings", page: Settings },
];

const readHash = () => {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const decoded = (part) => { try { return decodeURIComponent(part); } catch { return part; } };
  return { path, rest: rest.map(decoded) };
};

function useRoute() {
  const [route, setRoute] = useState(readHash);
  useEffect(() => {
    const change = () => setRoute(readHash());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

function Frame() {
  const { path, rest } = useRoute();
  const isPicture = path === "picture";
  const current = PAGES.find((one) => one.path === path) || PAGES[0];
  useEffect(() => {
    document.title = `${isPicture ? "Picture" : current.title} · limner studio`;
    if (isPicture || path) document.querySelector("main").focus({ preventScroll: true });
  }, [path, rest[0]]);
  const Page = current.page;
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.querySelector("main").focus();
    }}>Skip to the page</a>
    <nav aria-label="Pages">
      <a class="mark" href="#/" aria-label="limner studio"><img src="/static/icon.svg" alt="" width="28" height="28" /></a>
      ${PAGES.map((one) => html`
        <a key=${one.path} href=${"#/" + one.path} class="page-link"
          aria-current=${!isPicture && one === current ? "page" : null}>
          <${Icon} name=${one.icon} /><span>${one.title}</span>
        </a>`)}
    </nav>
    <main tabindex="-1" id="main">
      <${Gallery} hidden=${isPicture || current.page !== Gallery} session=${path === "session" ? rest[0] : ""} />
      ${isPicture && html`<${PicturePage} key=${rest[0]} handle=${rest[0]} />`}
      ${!isPicture && current.page !== Gallery && html`<${Page} key=${path} rest=${rest} />`}
    </main>
    <${Tray} />`;
}

render(html`<${Frame} />`, document.body);
