// What the screens behind the first share: buttons that act, dialogs, addresses, values.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { link, number, plural } from "/lib.js";

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

const SPANS = /** @type {const} */ ([["d", "day", 86_400_000], ["h", "hour", 3_600_000], ["m", "minute", 60_000], ["s", "second", 1_000], ["ms", "millisecond", 1]]);

/** Take a span of time of a definition apart, as 604800s: 7, d, day; null if it is none. @param {any} value */
function spanOf(value) {
  const found = /^(\d+)(m?s)$/.exec(value);
  if (!found) return null;
  const ms = Number(found[1]) * (found[2] === "s" ? 1_000 : 1);
  const [unit, name, long] = /** @type {typeof SPANS[number]} */ (SPANS.find(([unit, , long]) => ms % long === 0 && (ms || unit === "s")));
  return { count: ms / long, unit, name };
}

/** Write a setting of a definition to be read. @param {any} value @returns {string} */
export function settingText(value) {
  const span = spanOf(value);
  if (span) return plural(span.count, span.name);
  if (Array.isArray(value) && value.length && value.every((one) => typeof one === "string")) return value.join("\n");
  return Number.isInteger(value) ? number(value) : valueText(value);
}

/** Read a number as it is shown, 1,000 too; what is none stays a text. @param {string} text */
export function numberIn(text) {
  const bare = /^-?\d{1,3}(,\d{3})+$/.test(text) ? text.replaceAll(",", "") : text;
  return /^-?\d+(\.\d+)?$/.test(bare) ? Number(bare) : text;
}

/** Write a setting into a field, as short as a person would. @param {any} value */
export function fieldText(value) {
  const span = spanOf(value);
  if (span) return `${span.count}${span.unit}`;
  return Array.isArray(value) ? value.join("\n") : value === null ? "" : String(value);
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
