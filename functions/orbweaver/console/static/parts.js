// What the screens after the first share: buttons that act, dialogs, addresses, values.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { duration, link, number } from "/lib.js";

/** @typedef {import("/lib.js").Trouble} Trouble */

/** Write bytes, in thousands as disks are sold. @param {number} bytes */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) { bytes /= 1000; at += 1; }
  return `${at && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
}

/** @param {any} value */
export function valueText(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value) && !value.length) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const SPANS = /** @type {const} */ ([["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000], ["ms", 1]]);

/** Take a span of time of a definition apart, as 604800s: 7, d; null if it is none. @param {any} value */
function spanOf(value) {
  const found = /^(\d+)(m?s)$/.exec(value);
  if (!found) return null;
  const ms = Number(found[1]) * (found[2] === "s" ? 1_000 : 1);
  const [unit, long] = /** @type {typeof SPANS[number]} */ (SPANS.find(([unit, long]) => ms % long === 0 && (ms || unit === "s")));
  return { count: ms / long, unit };
}

/** Write milliseconds in the unit that fits: 500 ms, 1.5 s, 2 min 5 s. @param {number} ms */
export const spanText = (ms) => (ms < 1_000 ? `${number(ms)} ms` : ms < 60_000 ? `${Number((ms / 1_000).toFixed(1))} s` : duration(ms / 1_000));

/** @param {number} ms */
export const delayText = (ms) => (ms ? spanText(ms) : "none");

/** @param {any} value @returns {string} */
export function settingText(value) {
  const span = spanOf(value);
  if (span) return span.unit === "ms" ? spanText(span.count) : `${number(span.count)} ${span.unit}`;
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
  if (span) return `${span.count}${span.unit === "min" ? "m" : span.unit}`;
  return Array.isArray(value) ? value.join("\n") : value === null ? "" : String(value);
}

/** Keys whose values are a choice, with the words for each. @type {Record<string, Record<string, string>>} */
export const CHOICES = {
  "scope.links": { host: "same host", domain: "same domain", prefix: "same folder", any: "any host" },
  "records.bodies": { html: "HTML", all: "all media types", off: "none" },
  "records.text": { false: "no", true: "yes" },
  "politeness.robots": { true: "obey", false: "ignore" },
  "render.mode": { never: "never", auto: "where a page needs it", always: "every page" },
  "render.screenshot": { false: "no", true: "yes" },
  "limits.stop_when_nothing_new": { false: "no", true: "yes" },
};

/** @type {Record<string, string>} */
export const LABELS = {
  seeds: "Seeds", name: "Name", "scope.links": "Follow links to", "scope.include": "Include URLs matching", "scope.exclude": "Exclude URLs matching",
  "limits.pages": "Page limit", "limits.depth": "Depth limit", "limits.dollars": "Dollar limit", "limits.duration": "Time limit", "limits.bytes": "Byte limit",
  "limits.host_pages": "Page limit per host", "limits.stop_when_nothing_new": "Stop when nothing is new", "politeness.delay": "Delay per host", "politeness.concurrency": "Concurrency per host",
  "politeness.robots": "robots.txt", "records.bodies": "Store bodies", "records.text": "Store main text", "records.redact": "Redact", "render.mode": "Run scripts", "render.screenshot": "Store screenshots", "render.rules": "Rendering rules", rules: "URL rules", items: "Item rules",
};

/** @param {{url: string, crawl?: string}} given */
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
