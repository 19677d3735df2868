// Explain a URL: what became of it and why, as a line from what it is to when it is asked again.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, usePoll, user, link, number, moment, words, Heading, Warning, Loading } from "/lib.js";
import { size, spanText, Act, Address } from "/parts.js";

const GOOD = ["fetched", "unchanged", "redirected"];
// Statements that are made of URLs.
const LINKS = ["linked by", "url"];
// What of a record is shown, in this order.
const COLUMNS = ["outcome", "reason", "status", "content_type", "bytes", "latency_ms", "attempt", "title", "description", "language", "canonical", "links", "items", "error", "cut"];

/** Say how a fate looks. @param {any} told */
function toneOf(told) {
  if (told.fate === "ended") return GOOD.includes(told.record?.outcome) ? "good" : told.record?.outcome === "failed" ? "bad" : "warn";
  return ["refused", "malformed"].includes(told.fate) ? "bad" : "warn";
}

/** Find the statement that a refusal is about. @param {any} told @param {any} statement */
function decides(told, statement) {
  if (!told.refusal) return false;
  const about = told.refusal === "robots" ? "robots" : ["scope", "exclude", "include", "depth"].includes(told.refusal) ? "scope" : "trap";
  return statement.about === about;
}

/** The page as it is stored, or its picture, in a frame that runs nothing. @param {{url: string, crawl: string, picture?: boolean}} given */
export function Stored({ url, crawl, picture = false }) {
  const [frame, setFrame] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(null);
  const show = async () => {
    const [found, about] = await Promise.all([ask(picture ? "/console/picture" : "/console/frame", { body: { url, crawl } }), ask("/console/about")]);
    setFrame({ ...found, src: found.ticket && `http://${location.hostname}:${about.stored_port}/${found.ticket}` });
  };
  return html`<section class="panel" aria-labelledby=${picture ? "picture" : "stored"}><div class="heading"><h2 id=${picture ? "picture" : "stored"}>${picture ? "A picture of it, by its scripts" : "The page as it is stored"}</h2>
      ${!frame && html`<${Act} label="Show it" act=${show} done=${setTrouble} />`}</div>
    <${Warning} trouble=${trouble} />
    ${frame?.why && html`<p class="muted">${frame.why}</p>`}
    ${frame?.src && html`${!picture && html`<p class="muted">Its scripts, forms, pictures and fonts from elsewhere are left out.</p>`}<iframe class="stored" sandbox="" referrerpolicy="no-referrer" src=${frame.src} title=${picture ? "The picture of the page" : "The stored page"}></iframe>`}
  </section>`;
}

/** @param {{record: any}} given */
function Record({ record }) {
  const known = COLUMNS.filter((one) => record[one] !== null && record[one] !== undefined);
  const written = (/** @type {string} */ one) => (one === "bytes" ? size(record[one]) : one === "latency_ms" ? spanText(record[one]) : ["outcome", "reason"].includes(one) ? words(record[one]) : String(record[one]));
  return html`<section class="panel" aria-labelledby="record"><div class="heading"><h2 id="record">Record</h2><span class="muted">${moment(record.fetched_at)}</span></div>
    <dl class="settings">${known.map((one) => html`<dt>${words(one)}</dt><dd>${written(one)}</dd>`)}</dl></section>`;
}

/** @param {{told: any}} given */
function Told({ told }) {
  const tone = toneOf(told);
  const host = told.url && /^(https?:\/\/[^/]+)/.exec(told.url)?.[1];
  const kept = told.record?.body_length;
  return html`<div class=${`notice ${tone === "warn" ? "" : tone}`} role="status"><p class="verdict">${told.verdict}</p>
      <p class="muted">In <a href=${`#/run/${encodeURIComponent(told.crawl)}`}>${told.crawl}</a>${host && html` · <a href=${link("host", { host, url: told.url })}>its host</a>`}</p></div>
    <section class="panel" aria-labelledby="way"><div class="heading"><h2 id="way">Timeline</h2></div>
      <ol class="line">${told.statements.map((/** @type {any} */ one) => {
        const state = decides(told, one) ? "bad" : one.about === "ended" ? tone : "";
        const isLink = LINKS.includes(one.about) && /^https?:\/\//.test(one.words);
        return html`<li class=${state}><span class="about">${one.about}</span><span class="words">${isLink ? html`<${Address} url=${one.words} crawl=${told.crawl} />` : one.words}</span></li>`;
      })}</ol></section>
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
      <label>In run <input value=${run} onInput=${(/** @type {any} */ event) => setRun(event.target.value)} placeholder="the one it fits best" autocomplete="off" spellcheck=${false} /></label>
      <button class="main">Explain</button>
    </form>
    <${Warning} trouble=${trouble} />
    ${url && !data && !trouble && html`<${Loading} />`}
    ${data ? html`<${Told} told=${data} />` : !url && html`<div class="empty"><p>Why was a URL crawled, or not?</p><p class="muted">Rules, the line of robots.txt, who linked it, its claim, attempts, record, and when it is due again: from what is stored.</p></div>`}`;
}
