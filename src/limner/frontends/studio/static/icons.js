// A name -> a small line drawing, in the colour of the text.

import { html } from "/static/vendor/preact-htm.js";

const SHAPES = {
  gallery: "M3 5h8v8H3zM14 5h7v5h-7zM14 13h7v6h-7zM3 16h8v3H3z",
  draw: "M4 20l1-5L16 4l4 4L9 19zM13.5 6.5l4 4",
  talk: "M4 5h16v11H10l-4 4v-4H4z",
  money: "M4 19V9M10 19V5M16 19v-7M21 19H3",
  compare: "M12 3v18M4 6h5v12H4zM15 6h5v12h-5z",
  back: "M14 5l-7 7 7 7",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  zoom: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20M8 10.5h5M10.5 8v5",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20",
  bin: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  close: "M6 6l12 12M18 6L6 18",
  broken: "M4 5h16v14H4zM4 16l5-5 4 4M14 12l2-2 4 4",
};

export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" fill="none"
    stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">
    <path d=${SHAPES[name]} />
  </svg>`;
