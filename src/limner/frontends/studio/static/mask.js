// Strokes and boxes over a picture -> a mask of its size, white in the parts that may change.

import { html, useEffect, useRef, useState } from "/static/vendor/preact-htm.js";
import { file } from "/static/api.js";

const PAINT = "#ff4f9a";
const TOOLS = [["brush", "Brush", "b"], ["erase", "Erase", "e"], ["box", "Box", "x"]];
const SIZES = { min: 1, max: 40, usual: 8 };

// A step is a stroke or a box, in pixels of the picture.
function paint(context, { tool, width, points }) {
  context.globalCompositeOperation = tool === "erase" ? "destination-out" : "source-over";
  context.fillStyle = context.strokeStyle = PAINT;
  const [first, last] = [points[0], points[points.length - 1]];
  if (tool === "box") {
    context.fillRect(Math.min(first.x, last.x), Math.min(first.y, last.y), Math.abs(first.x - last.x), Math.abs(first.y - last.y));
    return;
  }
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  context.moveTo(first.x, first.y);
  for (const point of points) context.lineTo(point.x, point.y);
  context.stroke();
}

function draw(canvas, steps) {
  const context = canvas.getContext("2d");
  context.globalCompositeOperation = "source-over";
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const step of steps) paint(context, step);
}

// The smallest region with all that is painted: enough to ask for the price.
export function regionOf(steps, { width, height }) {
  const painted = steps.filter((step) => step.tool !== "erase");
  if (!painted.length) return null;
  const span = (name, most) => {
    const ends = painted.flatMap((step) => step.points.flatMap((point) => {
      const half = step.tool === "box" ? 0 : step.width / 2;
      return [point[name] - half, point[name] + half];
    }));
    const from = Math.min(most - 1, Math.max(0, Math.floor(Math.min(...ends))));
    return [from, Math.max(1, Math.min(most, Math.ceil(Math.max(...ends))) - from)];
  };
  const [x, wide] = span("x", width), [y, high] = span("y", height);
  return { x, y, width: wide, height: high };
}

export async function maskOf(steps, { width, height }) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  draw(canvas, steps);
  const context = canvas.getContext("2d");
  context.globalCompositeOperation = "source-in";
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = "#000";
  context.fillRect(0, 0, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export function MaskEditor({ handle, size, steps, change }) {
  const frame = useRef(), canvas = useRef(), stroke = useRef(null);
  const [tool, setTool] = useState("brush");
  const [brush, setBrush] = useState(SIZES.usual);
  const [cursor, setCursor] = useState(null);
  const edge = Math.max(size.width, size.height);
  const width = Math.max(2, (brush / 100) * edge);
  useEffect(() => draw(canvas.current, steps), [steps, size.width, size.height]);

  const at = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: ((event.clientX - box.left) / box.width) * size.width, y: ((event.clientY - box.top) / box.height) * size.height };
  };
  const show = () => draw(canvas.current, stroke.current ? [...steps, stroke.current] : steps);
  const start = (event) => {
    if (event.button) return;
    event.preventDefault();
    frame.current.focus({ preventScroll: true });
    setCursor(null);
    canvas.current.setPointerCapture(event.pointerId);
    stroke.current = { tool, width, points: [at(event)] };
    show();
  };
  const move = (event) => {
    if (!stroke.current) return;
    stroke.current.points.push(at(event));
    show();
  };
  const end = () => {
    const made = stroke.current;
    stroke.current = null;
    if (made && (tool !== "box" || made.points.length > 1)) change([...steps, made]);
    else show();
  };
  // Arrow keys move a cross; the space bar paints there, or sets a corner of the box.
  const keys = (event) => {
    const pick = TOOLS.find(([, , key]) => key === event.key);
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (pick && !event.ctrlKey && !event.metaKey) setTool(pick[0]);
    else if ((event.ctrlKey || event.metaKey) && event.key === "z") change(steps.slice(0, -1));
    else if (event.key === "[") setBrush(Math.max(SIZES.min, brush - 1));
    else if (event.key === "]") setBrush(Math.min(SIZES.max, brush + 1));
    else if (arrow) {
      const from = cursor || { x: size.width / 2, y: size.height / 2 }, far = edge / (event.shiftKey ? 100 : 25);
      const next = { x: Math.min(size.width, Math.max(0, from.x + arrow[0] * far)), y: Math.min(size.height, Math.max(0, from.y + arrow[1] * far)) };
      setCursor(next);
      if (stroke.current) { stroke.current.points.push(next); show(); }
    } else if (event.key === " " || event.key === "Enter") {
      const here = cursor || { x: size.width / 2, y: size.height / 2 };
      setCursor(here);
      if (tool !== "box") change([...steps, { tool, width, points: [here] }]);
      else if (stroke.current) end();
      else { stroke.current = { tool, width, points: [here] }; show(); }
    } else return;
    event.preventDefault();
  };
  const percent = (value, most) => (100 * value) / most + "%";
  return html`
    <div class="mask">
      <div class="mask-tools" role="toolbar" aria-label="Mask tools">
        ${TOOLS.map(([name, title, key]) => html`<button type="button" key=${name} aria-pressed=${String(tool === name)} title=${`Key ${key}`} onClick=${() => setTool(name)}>${title}</button>`)}
        <label class="brush">Size <input type="range" aria-label="Size of the brush" min=${SIZES.min} max=${SIZES.max} value=${brush} onInput=${(event) => setBrush(Number(event.target.value))} /></label>
        <button type="button" disabled=${!steps.length} onClick=${() => change(steps.slice(0, -1))}>Undo</button>
        <button type="button" disabled=${!steps.length} onClick=${() => change([])}>Clear</button>
      </div>
      <div class="mask-frame" ref=${frame} tabindex="0" role="application" aria-roledescription="painting surface" onKeyDown=${keys}
        aria-label="Paint the part that may change" aria-describedby="mask-help"
        style=${{ aspectRatio: `${size.width} / ${size.height}`, maxWidth: `calc((100dvh - 250px) * ${size.width / size.height})` }}>
        <img src=${file(handle)} alt="" draggable=${false} />
        <canvas ref=${canvas} width=${size.width} height=${size.height} onPointerDown=${start} onPointerMove=${move} onPointerUp=${end} onPointerCancel=${end}></canvas>
        ${cursor && html`<span class="cross" style=${{ left: percent(cursor.x, size.width), top: percent(cursor.y, size.height) }}></span>`}
      </div>
      <p class="quiet-text" id="mask-help">Paint what may change; the rest stays. With the keyboard: arrow keys move, Space paints or sets a corner, B brush, E erase, X box, [ and ] the size, Ctrl+Z undo.</p>
    </div>`;
}
