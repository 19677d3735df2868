// The map of a site: its sections by path, as areas and as a table; one leads into the next.
import { html, useState } from "/vendor/preact-htm.js";
import { ask, usePoll, link, number, percent, plural, Heading, Warning, Loading } from "/lib.js";
import { size } from "/parts.js";
import { useWidth } from "/chart.js";

/** What colours say: a section's share of the worst, and words for it. @type {Record<string, [string, (one: any) => number, (one: any) => string]>} */
const COLOURS = {
  failed: ["Failed", (one) => (one.urls ? one.failed / one.urls : 0), (one) => `${percent(one.failed, one.urls)} failed`],
  latency: ["Slow", (one) => one.latency_ms ?? 0, (one) => (one.latency_ms === null ? "not timed" : `${number(one.latency_ms)} ms`)],
  depth: ["Deep", (one) => one.depth, (one) => `depth ${one.depth}`],
};
const STEPS = 5;
const HIGH = 420;
// What is smaller has no room for words: its row has them, and its title.
const WIDE_MIN = 44, HIGH_MIN = 26;

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

/** The last part of a prefix. @param {string} at */
const nameOf = (at) => (/^\w+:\/\/[^/]+$/.test(at) ? at : at.slice(at.lastIndexOf("/") + 1));

/** @param {{rows: any[], crawl: string, by: string}} given */
function Areas({ rows, crawl, by }) {
  const [, value, told] = COLOURS[by];
  const most = Math.max(...rows.map(value), 0);
  const total = rows.reduce((sum, one) => sum + one.urls, 0);
  const [box, wide] = useWidth();
  const places = squares(rows.map((one) => (one.urls / total) * wide * HIGH), wide, HIGH);
  return html`<ul class="areas" ref=${box} aria-label="Sections by their number of URLs">${rows.map((one, place) => {
    const { x, y, w, h } = places[place];
    const step = most ? Math.min(STEPS - 1, Math.ceil((value(one) / most) * (STEPS - 1))) : 0;
    const style = { left: `${(100 * x) / wide}%`, top: `${(100 * y) / HIGH}%`, width: `${(100 * w) / wide}%`, height: `${(100 * h) / HIGH}%` };
    const body = html`<strong>${nameOf(one.at)}</strong><span>${number(one.urls)} · ${told(one)}</span>`;
    return html`<li style=${style} class=${`heat-${step}${w < WIDE_MIN || h < HIGH_MIN ? " tiny" : ""}`} title=${`${one.at}: ${plural(one.urls, "URL")}, ${told(one)}`}>${one.sections ? html`<a href=${link(`map/${encodeURIComponent(crawl)}`, { at: one.at, by })}>${body}</a>` : html`<div>${body}</div>`}</li>`;
  })}</ul>`;
}

/** @param {{at: string, crawl: string, by: string}} given */
function Crumbs({ at, crawl, by }) {
  const host = /^\w+:\/\/[^/]+/.exec(at)?.[0];
  const steps = host ? [host, ...at.slice(host.length).split("/").filter(Boolean)] : [];
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(crawl)}`}>${crawl}</a> / ${steps.length ? html`<a href=${link(`map/${encodeURIComponent(crawl)}`, { by })}>map</a>` : "map"}${steps.map((step, place) => html` / ${place === steps.length - 1 ? step : html`<a href=${link(`map/${encodeURIComponent(crawl)}`, { at: steps.slice(0, place + 1).join("/"), by })}>${step}</a>`}`)}</p>`;
}

/** @param {{of: string, query: URLSearchParams}} given */
export function SiteMap({ of, query }) {
  const at = query.get("at") ?? "";
  const [by, setBy] = useState(query.get("by") ?? "failed");
  const chosen = by in COLOURS ? by : "failed";
  const { data, trouble } = usePoll(() => ask("/console/sections", { query: { crawl: of, at } }), [of, at], 0);
  return html`<${Crumbs} at=${at} crawl=${of} by=${chosen} />
    <${Heading} title=${at ? nameOf(at) : "Map of the site"}><span class="muted">${data && plural(data.urls, "URL")}${data?.cut && ", and more that were not read"}</span></${Heading}>
    <div class="filters"><label>Colour <select value=${chosen} onChange=${(/** @type {any} */ event) => setBy(event.target.value)}>${Object.entries(COLOURS).map(([key, [title]]) => html`<option value=${key}>${title}</option>`)}</select></label>
      <span class="scale" aria-hidden="true">least ${Array.from({ length: STEPS }, (_, step) => html`<i class=${`heat-${step}`}></i>`)} most</span></div>
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data && data.inner.length === 0 && html`<div class="empty"><p>There is nothing below.</p></div>`}
    ${data?.inner.length > 0 && html`<${Areas} rows=${data.inner} crawl=${of} by=${chosen} />
    <div class="scroll" tabindex="0" role="region" aria-label="Sections"><table><thead><tr><th scope="col">Section</th><th scope="col" class="n">URLs</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Took</th><th scope="col" class="n">Depth</th><th scope="col" class="n">Size</th></tr></thead>
      <tbody>${data.inner.map((/** @type {any} */ one) => html`<tr><th scope="row">${one.sections ? html`<a class="url" href=${link(`map/${encodeURIComponent(of)}`, { at: one.at, by: chosen })}>${nameOf(one.at)}</a>` : html`<span class="url">${nameOf(one.at)}</span>`}</th><td class="n">${number(one.urls)}</td><td class=${one.failed ? "n warn" : "n"}>${number(one.failed)}</td><td class="n">${one.latency_ms === null ? "–" : `${number(one.latency_ms)} ms`}</td><td class="n">${number(one.depth)}</td><td class="n">${size(one.bytes)}</td></tr>`)}</tbody></table></div>
    ${data.inner_more > 0 && html`<p class="muted">And ${plural(data.inner_more, "smaller section")} with ${plural(data.urls_more, "URL")}.</p>`}
    ${data.own > 0 && at && html`<p class="muted">${plural(data.own, "URL")} of this section itself.</p>`}`}`;
}
