// Explains a URL: its result and the reasons, as a line from the rules to the next request.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, usePoll, user, link, plural, moment, localTimes, words, Heading, Warning, Loading, Said } from "/lib.js";
import { size, spanText, Act, Address } from "/parts.js";

const GOOD = ["fetched", "unchanged", "redirected"];
const LINKS = ["linked by", "url"];
/** Labels of statements, where the name of the fact needs one. @type {Record<string, string>} */
const ABOUT = { url: "URL", changed: "normalised", trap: "crawler trap", robots: "robots.txt", asked: "request", claim: "scheduled", ended: "result", means: "meaning", cut: "left out", body: "stored body", again: "next request" };
const COLUMNS = ["outcome", "reason", "status", "content_type", "bytes", "latency_ms", "attempt", "title", "description", "language", "canonical", "links", "items", "error", "cut"];
/** @type {Record<string, string>} */
const NAMES = { content_type: "content type", latency_ms: "response time", cut: "left out" };
// A reason after an outcome, and the id of a pack.
const REASON = /^(fetched|unchanged|redirected|skipped|failed): (\w+)/, PACK = /\b(pack [0-9a-f]{8})[0-9a-f]{24}\b/g;
/** @param {string} text */
const written = (text) => localTimes(text).replace(REASON, (_, outcome, reason) => `${outcome}: ${words(reason)}`).replace(PACK, "$1…");

/** @param {any} told */
function toneOf(told) {
  if (told.fate === "ended") return GOOD.includes(told.record?.outcome) ? "good" : told.record?.outcome === "failed" ? "bad" : "warn";
  return ["refused", "malformed"].includes(told.fate) ? "bad" : "warn";
}

/** @param {any} told @param {any} statement */
function decides(told, statement) {
  if (!told.refusal) return false;
  const about = told.refusal === "robots" ? "robots" : ["scope", "exclude", "include", "depth"].includes(told.refusal) ? "scope" : "trap";
  return statement.about === about;
}

/** The stored page or its screenshot, in a frame that runs nothing. @param {{url: string, crawl: string, picture?: boolean}} given */
export function Stored({ url, crawl, picture = false }) {
  const [frame, setFrame] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(null);
  const show = async () => {
    const [found, about] = await Promise.all([ask(picture ? "/console/picture" : "/console/frame", { body: { url, crawl } }), ask("/console/about")]);
    setFrame({ ...found, src: found.ticket && `http://${location.hostname}:${about.stored_port}/${found.ticket}` });
  };
  return html`<section class="panel" aria-labelledby=${picture ? "picture" : "stored"}><div class="heading"><h2 id=${picture ? "picture" : "stored"}>${picture ? "Screenshot" : "Stored page"}</h2>
      ${!frame && html`<${Act} label="Show" act=${show} done=${setTrouble} />`}</div>
    <${Warning} trouble=${trouble} />
    ${frame?.why && html`<p class="muted"><${Said} text=${frame.why} /></p>`}
    ${frame?.src && html`${!picture && html`<p class="muted">Shown without scripts, forms, and files from the web.</p>`}<iframe class="stored" sandbox="" referrerpolicy="no-referrer" src=${frame.src} title=${picture ? "Screenshot of the page" : "The stored page"}></iframe>`}
  </section>`;
}

/** @param {{record: any}} given */
function Record({ record }) {
  const known = COLUMNS.filter((one) => record[one] !== null && record[one] !== undefined);
  const cell = (/** @type {string} */ one) => (one === "bytes" ? size(record[one]) : one === "latency_ms" ? spanText(record[one]) : ["outcome", "reason"].includes(one) ? words(record[one]) : String(record[one]));
  return html`<section class="panel" aria-labelledby="record"><div class="heading"><h2 id="record">Record</h2><span class="muted">${moment(record.fetched_at)}</span></div>
    <dl class="settings">${known.map((one) => html`<dt>${NAMES[one] ?? one}</dt><dd>${cell(one)}</dd>`)}</dl></section>`;
}

/** Pages that link to a URL. @param {{url: string, crawl: string}} given */
function Backlinks({ url, crawl }) {
  const { data, trouble } = usePoll(() => ask("/console/backlinks", { query: { url, crawl } }), [url, crawl], 0);
  const found = data?.backlinks;
  const counted = found && `${plural(found.pages, "page links", "pages link")} here${found.sitemaps ? `, and ${plural(found.sitemaps, "sitemap lists", "sitemaps list")} it` : ""}`;
  const more = found && found.pages + found.sitemaps - found.first.length;
  return html`<section class="panel" aria-labelledby="backlinks"><div class="heading"><h2 id="backlinks">${counted ?? "Pages that link here"}</h2></div>
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data?.why && html`<p class="muted"><${Said} text=${data.why[0].toUpperCase() + data.why.slice(1)} /></p>`}
    ${found?.first.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Pages that link here"><table class="rows plain" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Page</th><th scope="col" role="columnheader">Kind</th><th scope="col" role="columnheader">Text</th></tr></thead><tbody role="rowgroup">
      ${found.first.map((/** @type {any} */ one) => html`<tr role="row"><th scope="row" role="rowheader"><${Address} url=${one.url} crawl=${crawl} /></th><td role="cell" data-name="kind">${one.kind}</td><td role="cell" class="wide">${one.text}</td></tr>`)}</tbody></table></div>`}
    ${more > 0 && html`<p class="muted">${plural(more, "more page")} not listed.</p>`}</section>`;
}

/** @param {{told: any}} given */
function Told({ told }) {
  const tone = toneOf(told);
  const host = told.url && /^(https?:\/\/[^/]+)/.exec(told.url)?.[1];
  const kept = told.record?.body_length;
  return html`<div class=${`notice ${tone === "warn" ? "" : tone}`} role="status"><p class="verdict"><${Said} text=${written(told.verdict)} /></p>
      <p class="muted">In <a href=${`#/run/${encodeURIComponent(told.crawl)}`}>${told.crawl}</a>${host && html` · <a href=${link("host", { host, url: told.url })}>host</a>`}</p></div>
    <section class="panel" aria-labelledby="way"><div class="heading"><h2 id="way">Timeline</h2></div>
      <ol class="line">${told.statements.map((/** @type {any} */ one, /** @type {number} */ place) => {
        const state = decides(told, one) ? "bad" : one.about === "ended" ? tone : "";
        const isLink = LINKS.includes(one.about) && /^https?:\/\//.test(one.words);
        return html`<li class=${state}><span class="about">${one.about !== told.statements[place - 1]?.about && (ABOUT[one.about] ?? one.about)}</span><span class="words">${isLink ? html`<${Address} url=${one.words} crawl=${told.crawl} />` : html`<${Said} text=${written(one.words)} />`}</span></li>`;
      })}</ol></section>
    ${told.url && !user() && html`<${Backlinks} url=${told.url} crawl=${told.crawl} />`}
    ${told.record && html`<div class="pair top"><${Record} record=${told.record} />${kept && !user() && html`<${Stored} key=${`${told.record.crawl} ${told.record.url}`} url=${told.record.url} crawl=${told.record.crawl} />`}</div>`}
    ${told.record?.screenshot_length && !user() && html`<${Stored} key=${`picture ${told.record.crawl} ${told.record.url}`} url=${told.record.url} crawl=${told.record.crawl} picture=${true} />`}`;
}

/** @param {{query: URLSearchParams}} given */
export function Explain({ query }) {
  const url = query.get("url") ?? "";
  const crawl = query.get("crawl") ?? "";
  const [typed, setTyped] = useState(url);
  const [run, setRun] = useState(crawl);
  useEffect(() => { setTyped(url); setRun(crawl); }, [url, crawl]);
  const { data, trouble } = usePoll(async () => (url ? ask("/api/explain", { query: { url, crawl } }) : null), [url, crawl], 0);
  const go = (/** @type {Event} */ event) => { event.preventDefault(); location.hash = link("explain", { url: typed.trim(), crawl: run.trim() }).slice(1); };
  return html`<${Heading} title="Explain a URL" />
    <form class="filters" role="search" onSubmit=${go}>
      <label class="wide">URL <input type="text" inputmode="url" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} placeholder="https://example.com/page" autocomplete="off" spellcheck=${false} required /></label>
      <label>In run <input value=${run} onInput=${(/** @type {any} */ event) => setRun(event.target.value)} placeholder="best match" autocomplete="off" spellcheck=${false} /></label>
      <button class="main">Explain</button>
    </form>
    <${Warning} trouble=${trouble} />
    ${url && !data && !trouble && html`<${Loading} />`}
    ${data ? html`<${Told} told=${data} />` : !url && html`<div class="empty"><p>Why was a URL crawled, or why not?</p><p class="muted">Type a URL above. The answer shows the rules, the line of robots.txt, the linking page, attempts, the result, and the next request.</p></div>`}`;
}
