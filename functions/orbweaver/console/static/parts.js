// What the screens behind the first share: buttons that act, dialogs, addresses, values.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { link } from "/lib.js";

/** @typedef {import("/lib.js").Trouble} Trouble */

/** Write bytes, in thousands as disks are sold. @param {number} bytes */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) { bytes /= 1000; at += 1; }
  return `${at && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
}

/** Write a value of a definition. @param {any} value */
export function valueText(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value) && !value.length) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A URL, which leads to its explanation. @param {{url: string, crawl?: string}} given */
export const Address = ({ url, crawl }) =>
  html`<a class="url" href=${link("explain", { url, crawl })} title=${url}>${url}</a>`;

/**
 * A button that acts once at a time, and shows what went wrong. While it acts it keeps the focus.
 * @param {{act: () => Promise<any>, label: string, kind?: string, said?: string, done?: (trouble: Trouble | null) => void, disabled?: boolean}} given
 */
export function Act({ act, label, kind = "", said, done, disabled = false }) {
  const [busy, setBusy] = useState(false);
  const go = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await act();
      done?.(null);
    } catch (trouble) {
      done?.(/** @type {Trouble} */ (trouble));
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${kind} aria-label=${said} disabled=${disabled} aria-disabled=${busy} aria-busy=${busy} onClick=${go}>${label}</button>`;
}

/**
 * A dialog, which keeps the focus within and is closed by Escape.
 * @param {{title: string, close: () => void, children?: any}} given
 */
export function Dialog({ title, close, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    dialog.current?.showModal();
    return () => before?.focus();
  }, []);
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${close}>
    <div class="heading"><h2>${title}</h2><button type="button" class="quiet" onClick=${() => dialog.current?.close()}>Close</button></div>
    ${children}
  </dialog>`;
}
