// A host: rate and blocks across all crawls, robots.txt with the deciding line, its crawls.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { delayText } from "/parts.js";
import { ask, usePoll, link, number, duration, moment, plural, Heading, Warning, State, Loading } from "/lib.js";

const EVERY_MS = 5_000;

/** @param {{seen: any}} given */
function Robots({ seen }) {
  const lines = (seen.robots ?? "").split(/\r\n|\r|\n/);
  return html`<section class="panel" aria-labelledby="robots"><div class="heading"><h2 id="robots">robots.txt</h2>${seen.robots_at_ms && html`<span class="muted">fetched ${moment(seen.robots_at_ms)}</span>`}</div>
    ${seen.says && html`<p class=${seen.allowed ? "" : "bad"} role="status"><strong>${seen.allowed ? "Allowed" : "Disallowed"}</strong>: ${seen.says}</p>`}
    ${seen.robots !== null
      ? html`<ol class="source" tabindex="0" aria-label="robots.txt">${lines.map((/** @type {string} */ line, /** @type {number} */ place) => html`<li class=${seen.line === place + 1 ? "decides" : ""} aria-current=${seen.line === place + 1 ? "true" : null}>${line}</li>`)}</ol>`
      : html`<p class="muted">${{ allow: "The host has none, so everything is allowed.", unreachable: "It is unreachable, so nothing is requested from this host.", rules: "It is empty." }[/** @type {string} */ (seen.robots_verdict)] ?? "No crawl has fetched it yet."}</p>`}
    ${seen.robots_cut > 0 && html`<p class="muted">${number(seen.robots_cut)} more bytes not shown.</p>`}
  </section>`;
}

/** @param {{seen: any, atMs: number}} given */
function Pace({ seen, atMs }) {
  const inS = (/** @type {number} */ at) => duration((at - atMs) / 1000);
  const delays = seen.crawls.map((/** @type {any} */ one) => one.standing.delay_ms);
  return html`<dl class="figures">
    <div><dt>Now</dt><dd class=${seen.blocked_until_ms ? "bad" : ""}>${seen.blocked_until_ms ? `blocked for ${inS(seen.blocked_until_ms)}` : "open"}<div class="below">${seen.why ?? (seen.next_slot_ms ? `next ${inS(seen.next_slot_ms)} already scheduled` : "next request possible at once")}</div></dd></div>
    <div><dt>Delay</dt><dd>${delays.length ? delayText(Math.max(...delays)) : "–"}<div class="below">longest of its crawls and robots.txt</div></dd></div>
    <div><dt>No answer</dt><dd class=${seen.failures ? "warn" : ""}>${number(seen.failures)}<div class="below">failed requests in a row</div></dd></div>
    <div><dt>429 and 503</dt><dd class=${seen.blocked_until_ms && seen.strikes ? "warn" : ""}>${number(seen.strikes)}<div class="below">${seen.strikes ? `last at ${moment(seen.struck_at_ms)}; reset after 30 min without one` : "none recently"}</div></dd></div>
  </dl>`;
}

/** @param {{seen: any}} given */
function Crawls({ seen }) {
  return html`<section class="panel" aria-labelledby="crawls"><div class="heading"><h2 id="crawls">Crawls with seeds here</h2></div>
    ${seen.crawls.length === 0 && html`<p class="muted">None. Crawls that reached this host through links are not listed.</p>`}
    ${seen.crawls.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Crawls"><table><thead><tr><th scope="col">Run</th><th scope="col">State</th><th scope="col" class="n">Found</th><th scope="col" class="n">Done</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Queued</th><th scope="col" class="n">Delay</th><th scope="col">robots.txt</th></tr></thead>
    <tbody>${seen.crawls.map((/** @type {any} */ { crawl, standing }) => html`<tr><th scope="row"><a href=${`#/run/${encodeURIComponent(crawl.id)}`}>${crawl.id}</a></th><td><${State} state=${crawl.state} stop=${crawl.stop} /></td>
      <td class="n">${number(standing.claimed)}</td><td class="n">${number(standing.done)}</td><td class=${standing.failed ? "n warn" : "n"}>${number(standing.failed)}</td><td class="n">${number(standing.queued)}</td><td class="n">${delayText(standing.delay_ms)}</td><td>${standing.robots}</td></tr>`)}</tbody></table></div>`}
    ${seen.more > 0 && html`<p class="muted">${plural(seen.more, "earlier run")} not listed.</p>`}
  </section>`;
}

function Known() {
  const { data } = usePoll(async () => {
    const page = await ask("/api/overview", { query: { limit: 30 } });
    const ids = page.crawls.map((/** @type {any} */ row) => `id=${encodeURIComponent(row.progress.crawl.id)}`).join("&");
    return ids ? (await ask(`/console/live?${ids}`)).crawls : {};
  }, [], 0);
  const hosts = [...new Set(Object.values(data ?? {}).flatMap((/** @type {any} */ shown) => shown.hosts.map((/** @type {any} */ host) => host.host)))];
  if (!hosts.length) return html`<div class="empty"><p>No host has been crawled yet.</p><p class="muted">Type a host above, or start a <a href="#/new">new crawl</a>. This screen shows request rate, blocks, and robots.txt with the line that decides about a URL.</p></div>`;
  return html`<section class="panel" aria-labelledby="known"><div class="heading"><h2 id="known">Hosts of recent runs</h2></div><ul class="samples">${hosts.map((host) => html`<li><a class="url" href=${link("host", { host })}>${host}</a></li>`)}</ul></section>`;
}

/** @param {{query: URLSearchParams}} given */
export function Host({ query }) {
  const host = query.get("host") ?? "";
  const url = query.get("url") ?? "";
  const [typed, setTyped] = useState(host);
  const [asked, setAsked] = useState(url);
  useEffect(() => { setTyped(host); setAsked(url); }, [host, url]);
  const { data, trouble, atMs } = usePoll(async () => (host ? ask("/api/host", { query: { host, url } }) : null), [host, url], host ? EVERY_MS : 0);
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    const path = asked.trim();
    const origin = data?.host ?? "";
    location.hash = link("host", { host: typed.trim(), url: path.startsWith("/") ? origin + path : path }).slice(1);
  };
  return html`<${Heading} title=${host ? data?.host ?? host : "Hosts"} />
    <form class="filters" role="search" onSubmit=${go}>
      <label>Host <input value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} placeholder="example.com" autocomplete="off" spellcheck=${false} required /></label>
      <label class="wide">Allowed by robots.txt? <input value=${asked} onInput=${(/** @type {any} */ event) => setAsked(event.target.value)} placeholder="/path or URL" autocomplete="off" spellcheck=${false} /></label>
      <button class="main">Show</button>
    </form>
    <${Warning} trouble=${trouble} atMs=${atMs} />
    ${host && !data && !trouble && html`<${Loading} />`}
    ${data ? html`<${Pace} seen=${data} atMs=${atMs} /><${Crawls} seen=${data} /><${Robots} seen=${data} />` : !host && html`<${Known} />`}`;
}
