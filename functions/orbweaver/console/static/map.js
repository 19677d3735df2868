// The map of a site: its sections by path, as areas and as a table, each with a map of its own.
import { html } from "/vendor/preact-htm.js";
import { ask, usePoll, link, number, percent, plural, Heading, Warning, Loading } from "/lib.js";
import { size, spanText } from "/parts.js";
import { useWidth } from "/chart.js";

/**
 * Colour scales of a section: a title, the class of the hue, the value, its text, and the lower bound of each step.
 * Bounds are the same for every site, so colours of two maps are comparable.
 * @type {Record<string, {title: string, hue: string, value: (one: any) => number, told: (one: any) => string, from: number[], legend: string[]}>}
 */
const COLOURS = {
  failed: { title: "Failed", hue: "failing", value: (one) => (one.urls ? one.failed / one.urls : 0), told: (one) => `${percent(one.failed, one.urls)} failed`, from: [0.05, 0.2, 0.5, 0.8], legend: ["less than 5 % failed", "from 5 %", "from 20 %", "from 50 %", "from 80 %"] },
  latency: { title: "Response time", hue: "slow", value: (one) => one.latency_ms ?? 0, told: (one) => (one.latency_ms === null ? "not timed" : spanText(one.latency_ms)), from: [500, 1_000, 2_000, 5_000], legend: ["less than 0.5 s", "from 0.5 s", "from 1 s", "from 2 s", "from 5 s"] },
  depth: { title: "Depth", hue: "deep", value: (one) => one.depth, told: (one) => `depth ${one.depth}`, from: [2, 4, 6, 10], legend: ["depth 0 or 1", "from 2", "from 4", "from 6", "from 10"] },
};
const HIGH = 420, HIGHEST = 2_000;
// Smaller areas have no room for words: such sections share one.
const WIDE_MIN = 76, HIGH_MIN = 64;

/** Which step of a colour a section has, 0 to 4. @param {string} by @param {any} one */
const stepOf = (by, one) => COLOURS[by].from.filter((least) => COLOURS[by].value(one) >= least).length;

/**
 * Lay areas out, each as square as may be (Bruls, Huizing, van Wijk: squarified treemaps).
 * @param {number[]} areas largest first, as large as the rectangle all together
 * @param {number} w @param {number} h
 * @returns {{x: number, y: number, w: number, h: number}[]}
 */
export function squares(areas, w, h, x = 0, y = 0) {
  const found = [];
  let at = 0;
  while (at < areas.length) {
    const side = Math.min(w, h);
    let end = at, sum = 0, worst = Infinity;
    while (end < areas.length) {
      const next = sum + areas[end];
      const ratio = Math.max((side * side * areas[at]) / (next * next), (next * next) / (side * side * areas[end]));
      if (ratio > worst) break;
      worst = ratio; sum = next; end += 1;
    }
    const thick = sum / side;
    let along = 0;
    for (; at < end; at += 1) {
      const long = areas[at] / thick;
      found.push(w >= h ? { x, y: y + along, w: thick, h: long } : { x: x + along, y, w: long, h: thick });
      along += long;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
  }
  return found;
}

/** @param {string} at */
const nameOf = (at) => (/^\w+:\/\/[^/]+$/.test(at) ? at : at.slice(at.lastIndexOf("/") + 1));

/** @param {any[]} rows */
function together(rows) {
  const sum = (/** @type {any[]} */ of, /** @type {(one: any) => number} */ value) => of.reduce((all, one) => all + value(one), 0);
  const timed = rows.filter((one) => one.latency_ms !== null);
  return { at: `${number(rows.length)} smaller sections`, urls: sum(rows, (one) => one.urls), failed: sum(rows, (one) => one.failed), depth: Math.min(...rows.map((one) => one.depth)),
    latency_ms: timed.length ? Math.round(sum(timed, (one) => one.latency_ms * one.urls) / sum(timed, (one) => one.urls)) : null };
}

/**
 * Lay sections out so that each has room for words: the smallest share an area, of a fifth of the URLs at most; where
 * that is not enough the map is higher.
 * @param {any[]} rows largest first @param {number} wide
 */
export function laidOut(rows, wide) {
  const total = rows.reduce((sum, one) => sum + one.urls, 0);
  for (let high = HIGH; ; high += HIGH / 4) {
    let shared = 0;
    for (let kept = rows.length; kept >= 1 && shared <= total / 5; kept -= 1) {
      const rest = kept < rows.length ? [together(rows.slice(kept))] : [];
      const areas = [...rows.slice(0, kept), ...rest].sort((one, other) => other.urls - one.urls);
      const places = squares(areas.map((one) => (one.urls / total) * wide * high), wide, high);
      if (places.every(({ w, h }) => w >= WIDE_MIN && h >= HIGH_MIN) || high > HIGHEST) return { high, areas: areas.map((one, place) => ({ one, ...places[place] })) };
      shared += rows[kept - 1].urls;
    }
  }
}

/** @param {{rows: any[], crawl: string, by: string}} given */
function Areas({ rows, crawl, by }) {
  const { hue, told } = COLOURS[by];
  const [box, wide] = useWidth(0);
  const { high, areas } = laidOut(rows, wide);
  return html`<ul class=${`areas ${hue}`} style=${{ height: `${high}px` }} ref=${box} aria-label="Sections by their number of URLs">${areas.map(({ one, x, y, w, h }) => {
    const style = { left: `${(100 * x) / wide}%`, top: `${(100 * y) / high}%`, width: `${(100 * w) / wide}%`, height: `${(100 * h) / high}%` };
    const body = html`<strong>${nameOf(one.at)}</strong><span>${number(one.urls)} · ${told(one)}</span>`;
    return html`<li style=${style} class=${`heat-${stepOf(by, one)}`} title=${`${one.at}: ${plural(one.urls, "URL")}, ${told(one)}`}>${one.sections ? html`<a href=${link(`map/${encodeURIComponent(crawl)}`, { at: one.at, by })}>${body}</a>` : html`<div>${body}</div>`}</li>`;
  })}</ul>`;
}

/** The path to a section; it starts at the host if there is one host only. @param {{at: string, crawl: string, by: string, hosts: number}} given */
function Crumbs({ at, crawl, by, hosts }) {
  const host = /^\w+:\/\/[^/]+/.exec(at)?.[0];
  const steps = host ? [host, ...at.slice(host.length).split("/").filter(Boolean)] : [];
  const map = `map/${encodeURIComponent(crawl)}`;
  const all = [...(hosts === 1 && steps.length ? [] : [{ name: "map", at: "" }]), ...steps.map((name, place) => ({ name, at: steps.slice(0, place + 1).join("/") }))];
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(crawl)}`}>${crawl}</a>${all.map((one, place) => html` / ${place === all.length - 1 ? one.name : html`<a href=${link(map, { at: one.at, by })}>${one.name}</a>`}`)}</p>`;
}

/** @param {{by: string}} given */
const Legend = ({ by }) => html`<ul class=${`scale ${COLOURS[by].hue}`} aria-label="Meaning of the colours">${COLOURS[by].legend.map((says, step) => html`<li><i class=${`heat-${step}`} aria-hidden="true"></i>${says}</li>`)}</ul>`;

/** @param {{of: string, query: URLSearchParams}} given */
export function SiteMap({ of, query }) {
  const asked = query.get("at") ?? "";
  const by = query.get("by") ?? "";
  const chosen = by in COLOURS ? by : "failed";
  const { data, trouble } = usePoll(() => ask("/console/sections", { query: { crawl: of, at: asked } }), [of, asked], 0);
  const at = data?.at ?? asked;
  return html`<${Crumbs} at=${at} crawl=${of} by=${chosen} hosts=${data?.hosts} />
    <${Heading} title=${asked ? nameOf(asked) : "Map of the site"}><span class="muted">${data && plural(data.urls, "URL")}${data?.cut && ", and more unread"}</span></${Heading}>
    <div class="filters"><label>Colour <select value=${chosen} onChange=${(/** @type {any} */ event) => { location.hash = link(`map/${encodeURIComponent(of)}`, { at: asked, by: event.target.value }).slice(1); }}>${Object.entries(COLOURS).map(([key, { title }]) => html`<option value=${key}>${title}</option>`)}</select></label>
      <${Legend} by=${chosen} /></div>
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data && data.inner.length === 0 && html`<div class="empty"><p>No URLs in this section.</p></div>`}
    ${data?.inner.length > 0 && html`<${Areas} rows=${data.inner} crawl=${of} by=${chosen} />
    <div class="scroll" tabindex="0" role="region" aria-label="Sections"><table><thead><tr><th scope="col">Section</th><th scope="col" class="n">URLs</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Took</th><th scope="col" class="n">Depth</th><th scope="col" class="n">Size</th></tr></thead>
      <tbody>${data.inner.map((/** @type {any} */ one) => html`<tr><th scope="row">${one.sections ? html`<a class="url" href=${link(`map/${encodeURIComponent(of)}`, { at: one.at, by: chosen })}>${nameOf(one.at)}</a>` : html`<span class="url">${nameOf(one.at)}</span>`}</th><td class="n">${number(one.urls)}</td><td class=${one.failed ? "n warn" : "n"}>${number(one.failed)}</td><td class="n">${one.latency_ms === null ? "–" : spanText(one.latency_ms)}</td><td class="n">${number(one.depth)}</td><td class="n">${size(one.bytes)}</td></tr>`)}</tbody></table></div>
    ${data.inner_more > 0 && html`<p class="muted">${plural(data.inner_more, "smaller section")} not listed, with ${plural(data.urls_more, "URL")}.</p>`}
    ${data.own > 0 && html`<p class="muted">${plural(data.own, "URL")} directly in this section.</p>`}`}`;
}
