// The text of a model, which is not trusted -> simple elements. No HTML, no links, no pictures.

import { html } from "/static/vendor/preact-htm.js";

const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*)/;

const inline = (text) => text.split(INLINE).map((part, at) => {
  if (at % 2 === 0) return part;
  if (part[0] === "`") return html`<code>${part.slice(1, -1)}</code>`;
  return part[1] === "*" ? html`<strong>${part.slice(2, -2)}</strong>` : html`<em>${part.slice(1, -1)}</em>`;
});

const withBreaks = (lines) => lines.flatMap((line, at) => (at ? [html`<br />`, ...inline(line)] : inline(line)));

function block(lines) {
  const heading = /^#{1,6} +(.*)$/.exec(lines[0]);
  if (heading && lines.length === 1) return html`<p><strong>${inline(heading[1])}</strong></p>`;
  const bullets = lines.map((line) => /^\s*(?:[-*]|\d+[.)]) +(.*)$/.exec(line));
  if (bullets.every(Boolean)) {
    const rows = bullets.map((found) => html`<li>${inline(found[1])}</li>`);
    return /^\s*\d/.test(lines[0]) ? html`<ol>${rows}</ol>` : html`<ul>${rows}</ul>`;
  }
  return html`<p>${withBreaks(lines)}</p>`;
}

export function Markdown({ text }) {
  const blocks = [];
  let lines = [];
  let code = null;
  const end = () => { if (lines.length) blocks.push(block(lines)); lines = []; };
  const endCode = () => { blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`); code = null; };
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*```/.test(line)) {
      if (code) endCode();
      else { end(); code = []; }
    } else if (code) code.push(line);
    else if (!line.trim()) end();
    else {
      // A list or a heading may follow a sentence without an empty line.
      const isItem = (one) => /^\s*(?:[-*]|\d+[.)]) +/.test(one);
      if (lines.length && (isItem(line) !== isItem(lines[0]) || /^#{1,6} /.test(line) || /^#{1,6} /.test(lines[0]))) end();
      lines.push(line);
    }
  }
  if (code) endCode();
  end();
  return html`<div class="prose">${blocks}</div>`;
}
