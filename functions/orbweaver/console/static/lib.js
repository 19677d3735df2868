// What all screens share: requests, polling, and how numbers and texts are written.
// What a site wrote is only ever a child of an element, which Preact makes a text node of.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
export { html };

export const KEY = "orbweaver-console-token", SESSION = "orbweaver-console-session";
export const PRINTED = "open the address that `orbweaver console` printed";

export const token = () => sessionStorage.getItem(SESSION) ?? localStorage.getItem(KEY);
/** Who is signed in to the hosted form; null on one's own machine, where nobody is. */
export function user() {
  const claims = sessionStorage.getItem(SESSION)?.split(".")[1];
  if (!claims) return null;
  try {
    const bytes = Uint8Array.from(atob(claims.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const told = JSON.parse(new TextDecoder().decode(bytes));
    return { name: String(told.username), steers: told["cognito:groups"]?.includes("steer") === true, untilMs: told.exp * 1000 };
  } catch { return null; }
}

/** Whether this person may change anything: the hosted console requires a group. */
export const steers = () => user()?.steers ?? true;

/** A request that was refused, or not answered (`status` 0). */
export class Trouble extends Error {
  /** @param {number} status @param {string} text @param {{path: string, text: string}[]} problems */
  constructor(status, text, problems = []) { super(text); this.status = status; this.problems = problems; }
}

/**
 * Ask the console for JSON.
 * @param {string} path
 * @param {{method?: string, body?: any, query?: Record<string, string | number | null | undefined>}} given
 * @returns {Promise<any>}
 */
export async function ask(path, given = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") query.append(name, String(value));
  }
  if (!token()) throw new Trouble(401, PRINTED);
  /** @type {Record<string, string>} */
  const headers = { Authorization: `Bearer ${token()}` };
  if (given.body !== undefined) headers["Content-Type"] = "application/json";
  const tail = query.size ? `?${query}` : "";
  const method = given.method ?? (given.body === undefined ? "GET" : "POST");
  let reply;
  try {
    reply = await fetch(path + tail, { method, headers, body: given.body === undefined ? undefined : JSON.stringify(given.body) });
  } catch {
    throw new Trouble(0, user() ? "The console does not answer. Check your network connection." : "The console does not answer. Is `orbweaver console` still running?");
  }
  const body = await reply.json().catch(() => null);
  if (reply.status === 401) dispatchEvent(new CustomEvent("unknown", { detail: body?.detail ?? "Your sign-in has ended." }));
  if (!reply.ok) throw new Trouble(reply.status, body?.detail ?? `HTTP ${reply.status}`, body?.problems);
  return body;
}

const AWAY_MS = 15_000;

/**
 * Ask again and again: every `everyMs` while the page is seen, seldom otherwise. What was read last
 * stays while there is trouble.
 * @template T
 * @param {() => Promise<T>} load
 * @param {any[]} about begins anew when one of these changes
 * @param {number | ((data: T) => number)} everyMs 0: never again
 * @returns {{data: T | null, trouble: Trouble | null, atMs: number, again: () => void}}
 */
export function usePoll(load, about, everyMs) {
  const [state, setState] = useState(/** @type {any} */ ({ data: null, trouble: null, atMs: 0 }));
  const again = useRef(() => {});
  useEffect(() => {
    let ended = false, timer = 0, turn = 0;
    setState({ data: null, trouble: null, atMs: 0 });
    async function go() {
      clearTimeout(timer);
      const mine = ++turn;
      /** @type {any} */
      let data = null, wait = 0;
      try {
        data = await load();
        if (ended || mine !== turn) return;
        setState({ data, trouble: null, atMs: Date.now() });
        wait = typeof everyMs === "function" ? everyMs(data) : everyMs;
      } catch (trouble) {
        if (ended || mine !== turn) return;
        setState((/** @type {any} */ was) => ({ ...was, trouble }));
        wait = trouble instanceof Trouble && [401, 404].includes(trouble.status) ? 0 : 4_000;
      }
      if (wait) timer = setTimeout(go, document.hidden ? Math.max(wait, AWAY_MS) : wait);
    }
    const seen = () => { if (!document.hidden && everyMs) go(); };
    again.current = go;
    document.addEventListener("visibilitychange", seen);
    go();
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, about);
  return { ...state, again: () => again.current() };
}

const WHOLE = new Intl.NumberFormat("en-US");
/** @param {number | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? "–" : WHOLE.format(value));
/** @param {number} count @param {string} one @param {string} [many] */
export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many ?? `${one}s`}`;
/** @param {number} value */
export const rate = (value) => (value >= 100 ? number(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

/** @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (!whole || !part) return "0 %";
  const share = (100 * part) / whole;
  return share < 0.1 ? "< 0.1 %" : `${share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

/** Write dollars: to the cent, and less than ten of them with two digits that count. @param {number} amount */
export function dollars(amount) {
  if (!amount || amount <= 0) return "$0";
  if (amount >= 0.1) return `$${amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return `$${amount.toFixed([3, 4, 5, 6, 7, 8].find((one) => Number(amount.toFixed(one)) >= 10 ** (1 - one)) ?? 9)}`;
}

const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
/** Write a duration in its two largest units: 35 s, 4 min 17 s, 2 h 5 min, 3 d 4 h. @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [[Math.floor(whole / 86_400), "d"], [Math.floor(whole / 3_600) % 24, "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
  const first = parts.findIndex(([count]) => count);
  return parts.slice(first, first + 2).filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ") || "0 s";
}

/** Write a moment in this machine's time zone; with day and zone unless it is today. @param {number | string} at */
export function moment(at) {
  const when = new Date(at);
  const time = `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
  if (new Date().toDateString() === when.toDateString()) return time;
  const west = when.getTimezoneOffset(), far = Math.abs(west);
  const zone = west ? `${west > 0 ? "−" : "+"}${two(Math.floor(far / 60))}:${two(far % 60)}` : "";
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${time} UTC${zone}`;
}

/** Write the UTC moments of a sentence in this machine's time zone. @param {string} text */
export const localTimes = (text) => text.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/g, (_, day, time) => moment(`${day}T${time}Z`));
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @param {string} text */
export const words = (text) => text.replaceAll("_", " ");
/** @param {string} screen @param {Record<string, string | null | undefined>} [query] */
export function link(screen, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value);
  return `#/${screen}${known.length ? `?${new URLSearchParams(/** @type {any} */ (known))}` : ""}`;
}

/** A sentence with its `commands` as code. @param {{text: string}} given */
export const Said = ({ text }) => html`${text.split("`").map((part, place) => (place % 2 ? html`<code>${part}</code>` : part))}`;

/** @param {{title: string, children?: any}} given */
export function Heading({ title, children }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    document.title = `${title} · Orbweaver`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`<div class="heading"><h1 tabindex="-1" ref=${heading}>${title}</h1>${children}</div>`;
}

/** A problem, and the age of what is shown. @param {{trouble: Trouble | null, atMs?: number}} given */
export function Warning({ trouble, atMs }) {
  // A missing sign-in is shown once, above everything.
  if (!trouble || trouble.status === 401) return null;
  return html`<div class="notice bad" role="alert">
    <p><${Said} text=${trouble.message} /></p>
    ${trouble.problems?.length > 1 && html`<ul>${trouble.problems.map((one) => html`<li>${one.path && html`<code>${one.path}</code>`} ${one.text}</li>`)}</ul>`}
    ${atMs ? html`<p class="muted">Data from ${moment(atMs)}. Retrying…</p>` : null}
  </div>`;
}

const MARKS = { running: "●", paused: "❚❚", stopping: "◐", finished: "○" };

/** @param {{state: string, stop?: string | null}} given */
export const State = ({ state, stop }) => html`<span class=${`state ${state}`}>
  <span aria-hidden="true">${/** @type {any} */ (MARKS)[state] ?? ""}</span> ${state}${stop && stop !== state ? `: ${words(stop)}` : ""}</span>`;

/** @param {{part: number, whole: number, label: string}} given */
export function Meter({ part, whole, label }) {
  return html`<meter class="share" min="0" max=${whole || 1} value=${Math.min(part, whole || 1)} aria-label=${label}></meter>`;
}

export const Loading = () => html`<p class="muted" role="status">Loading…</p>`;
