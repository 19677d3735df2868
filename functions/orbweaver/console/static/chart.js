// Found against done over time, and where the two would meet at the current rate.
import { html, useState, useRef, useLayoutEffect } from "/vendor/preact-htm.js";
import { number, duration, moment } from "/lib.js";

const HIGH = 236, LEFT = 52, RIGHT = 14, TOP = 10, BOTTOM = 24;
// The last part of a run that a projection is made of.
const LATE_MS = 90_000;
// A projection is drawn no further than this many times what is past.
const AHEAD = 1;
// A projection to more than this many times the known URLs is a guess.
const GROWTH_MAX = 2;
// Round steps of a time axis in seconds.
const TIMES_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200];
const ROWS = 12;

/** @typedef {[number, number, number, number, number]} Sample at, found, done, read, failed */

/**
 * Estimate when found and done meet at their late rates; found grows to `most` at most.
 * @param {Sample[]} samples
 * @param {number} most
 * @returns {{atMs: number, count: number} | null}
 */
export function crossing(samples, most) {
  const last = samples.at(-1);
  const first = samples.find((one) => last && last[0] - one[0] <= LATE_MS);
  if (!last || !first || first === last || last[0] === first[0]) return null;
  const span = last[0] - first[0];
  const found = (last[1] - first[1]) / span;
  const done = (last[2] - first[2]) / span;
  const left = last[1] - last[2];
  if (left <= 0 || done <= 0) return null;
  const wait = done > found ? left / (done - found) : Infinity;
  const count = Math.min(last[1] + found * wait, Math.max(most, last[1]));
  if (count > GROWTH_MAX * last[1]) return null;
  // Where the limit ends the growth of found, done goes on to it.
  const atMs = last[0] + (count - last[2]) / done;
  return Number.isFinite(atMs) ? { atMs, count } : null;
}

/** @param {number} most_s @param {number} parts */
function timeSteps(most_s, parts) {
  const step = TIMES_S.find((one) => most_s / one <= parts) ?? Math.ceil(most_s / parts / 86_400) * 86_400;
  return Array.from({ length: Math.floor(most_s / step) + 1 }, (_, place) => place * step);
}

/** @param {number} most @param {number} parts */
export function steps(most, parts) {
  const raw = Math.max(1, most) / parts;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, (raw / unit > 5 ? 10 : raw / unit > 2 ? 5 : raw / unit > 1 ? 2 : 1) * unit);
  const marks = [];
  for (let at = 0; at <= most; at += step) marks.push(at);
  return marks;
}

/** @param {Sample[]} samples @param {boolean} live @param {{atMs: number, count: number} | null} meets */
function told(samples, live, meets) {
  const last = /** @type {Sample} */ (samples.at(-1));
  const now = `${number(last[1])} URLs found, ${number(last[2])} done`;
  if (!live) return `${now}.`;
  if (meets) return `${now}. At the current rate: done in ${duration((meets.atMs - last[0]) / 1000)}, at about ${number(Math.round(meets.count))} URLs.`;
  return last[1] > last[2] ? `${now}. The end cannot be estimated yet.` : `${now}.`;
}

/** Follow the width of an element that a drawing fills, except for its margins. @param {number} [margins] */
export function useWidth(margins = 28) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [wide, setWide] = useState(680);
  useLayoutEffect(() => {
    const measure = () => box.current && setWide(Math.max(260, box.current.clientWidth - margins));
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return /** @type {const} */ ([box, wide]);
}

/**
 * @param {{samples: Sample[], past: [number, number][], startedMs: number, finishedMs: number | null, most: number, live: boolean}} given
 * `past`: how many URLs were done by when before the first sample; found is unknown then
 */
export function Crossing({ samples, past, startedMs, finishedMs, most: limit, live }) {
  const [asTable, setAsTable] = useState(false);
  const [box, WIDE] = useWidth();
  if (!samples.length) return null;
  // A sample taken after the end shows the counts at the end.
  const end = finishedMs ?? Infinity;
  const seen = samples.map((one) => /** @type {Sample} */ ([Math.min(one[0], end), ...one.slice(1)]));
  const last = /** @type {Sample} */ (seen.at(-1));
  const watched = seen[0][0];
  /** @type {Sample[]} */
  const before = [[startedMs, 0, 0, 0, 0], ...past.map(([at, done]) => /** @type {Sample} */ ([at, 0, done, 0, 0]))];
  const all = [...before, ...seen];
  const meets = live ? crossing(seen, limit) : null;
  const firstMs = all[0][0];
  const span = Math.max(1_000, last[0] - firstMs);
  const endMs = meets ? Math.min(meets.atMs, last[0] + span * AHEAD) : last[0];
  const share = meets ? (endMs - last[0]) / (meets.atMs - last[0]) : 0;
  const ahead = meets ? { found: last[1] + (meets.count - last[1]) * share, done: last[2] + (meets.count - last[2]) * share } : null;
  const most = Math.max(4, last[1], ahead?.found ?? 0) * 1.06;
  const x = (/** @type {number} */ at) => LEFT + ((at - firstMs) / Math.max(1_000, endMs - firstMs)) * (WIDE - LEFT - RIGHT);
  const y = (/** @type {number} */ count) => HIGH - BOTTOM - (count / most) * (HIGH - TOP - BOTTOM);
  const line = (/** @type {Sample[]} */ of, /** @type {1 | 2} */ column) => of.map((one, place) => `${place ? "L" : "M"}${x(one[0]).toFixed(1)} ${y(one[column]).toFixed(1)}`).join("");
  const area = `${line(seen, 1)}${[...seen].reverse().map((one) => `L${x(one[0]).toFixed(1)} ${y(one[2]).toFixed(1)}`).join("")}Z`;
  // Found is unknown before the first sample.
  const unseen = watched - startedMs > 1_500;
  const known = unseen ? seen : [all[0], ...seen];
  const says = told(samples, live, meets);
  const times = timeSteps((endMs - firstMs) / 1000, WIDE > 450 ? 6 : 3);
  const every = Math.max(1, Math.ceil(samples.length / ROWS));
  return html`<figure class="panel" ref=${box}>
    <div class="heading"><h2>Found and done</h2>
      <button type="button" class="quiet" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>${asTable ? "Show chart" : "Show table"}</button></div>
    ${asTable
      ? html`<div class="scroll" tabindex="0" role="region" aria-label="Found and done"><table><thead><tr><th scope="col">At</th><th scope="col" class="n">Found</th><th scope="col" class="n">Done</th><th scope="col" class="n">Pages</th><th scope="col" class="n">Failed</th></tr></thead>
          <tbody>${seen.filter((_, place) => (seen.length - 1 - place) % every === 0).map((one) => html`<tr><td>${moment(one[0])}</td>${one.slice(1).map((value) => html`<td class="n">${number(value)}</td>`)}</tr>`)}</tbody></table></div>`
      : html`<svg class="chart" viewBox=${`0 0 ${WIDE} ${HIGH}`} width=${WIDE} height=${HIGH} role="img" aria-label=${says}>
          ${steps(most, 4).map((mark) => html`<line class="grid" x1=${LEFT} x2=${WIDE - RIGHT} y1=${y(mark)} y2=${y(mark)} /><text x=${LEFT - 8} y=${y(mark) + 4} text-anchor="end">${number(mark)}</text>`)}
          ${times.map((mark) => html`<text x=${x(firstMs + mark * 1000)} y=${HIGH - 7} text-anchor=${mark ? "middle" : "start"}>${duration(mark)}</text>`)}
          <path class="area" d=${area} />
          <path class="found" d=${line(known, 1)} /><path class="done" d=${line(all, 2)} />
          ${ahead && html`<path class="found ahead" d=${`M${x(last[0])} ${y(last[1])}L${x(endMs)} ${y(ahead.found)}`} />
            <path class="done ahead" d=${`M${x(last[0])} ${y(last[2])}L${x(endMs)} ${y(ahead.done)}`} />
            ${share === 1 && html`<circle class="cross" cx=${x(endMs)} cy=${y(ahead.done)} r="4" />`}`}
          <line class="axis" x1=${LEFT} x2=${WIDE - RIGHT} y1=${HIGH - BOTTOM} y2=${HIGH - BOTTOM} />
        </svg>`}
    <ul class="legend">${known.length > 1 && html`<li class="found"><i></i>found</li>`}<li class="done"><i></i>done</li>${ahead && html`<li>- - at the current rate</li>`}</ul>
    <p>${says}${unseen && html` <span class="muted">The console was not open before ${moment(watched)}: “found” is missing until then${past.length ? ", “done” is from records" : ""}.</span>`}</p>
  </figure>`;
}
