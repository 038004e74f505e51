// A question with two buttons -> whether the user said yes; and where the keyboard goes.

import { html, render, useEffect, useRef } from "/static/vendor/preact-htm.js";

// A button that becomes a field and back: the keyboard goes with it.
export function useFocusOfField(isField) {
  const [button, field] = [useRef(), useRef()];
  const was = useRef(isField);
  useEffect(() => {
    const target = isField ? field.current : button.current;
    if (was.current !== isField && target) target.focus();
    was.current = isField;
  }, [isField]);
  return { button, field };
}

export const confirmed = ({ title, text, yes }) => new Promise((resolve) => {
  const holder = document.body.appendChild(document.createElement("div"));
  const before = document.activeElement;
  let said = false;
  const end = () => {
    render(null, holder);
    holder.remove();
    if (before && before.isConnected) before.focus();
    resolve(said);
  };
  render(html`
    <dialog aria-labelledby="dialog-title" aria-describedby="dialog-text" onClose=${end}>
      <h2 id="dialog-title">${title}</h2>
      <p id="dialog-text">${text}</p>
      <form method="dialog" class="dialog-actions">
        <button>Cancel</button>
        <button class="main bad" onClick=${() => { said = true; }}>${yes}</button>
      </form>
    </dialog>`, holder);
  holder.querySelector("dialog").showModal();
});
