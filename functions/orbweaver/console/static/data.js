// What a run has: its pages, items and texts, a page of rows at a time, and all pages as a file.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, user, link, number, plural, moment, words, Heading, Warning, Loading } from "/lib.js";
import { size, Act, Address } from "/parts.js";

const TABLES = ["pages", "items", "texts"];
const OUTCOMES = ["fetched", "unchanged", "redirected", "skipped", "failed"];
const ROWS = 100, TEXTS = 20;
const TEXT_CHARS = 280;

/** The rows of pages. @param {{rows: any[], crawl: string}} given */
const Pages = ({ rows, crawl }) => html`<table><thead><tr><th scope="col">URL</th><th scope="col">Title</th><th scope="col">Outcome</th><th scope="col" class="n">Status</th><th scope="col" class="n">Depth</th><th scope="col" class="n">Size</th><th scope="col" class="n">Took</th><th scope="col">At</th></tr></thead>
  <tbody>${rows.map((row) => html`<tr><th scope="row"><${Address} url=${row.url} crawl=${crawl} /></th><td>${row.title ?? html`<span class="muted">${row.error}</span>`}</td><td class=${row.outcome === "failed" ? "bad" : ""}>${row.outcome}${row.reason !== "ok" && `: ${words(row.reason)}`}</td><td class="n">${row.status}</td><td class="n">${number(row.depth)}</td><td class="n">${row.bytes === null ? "–" : size(row.bytes)}</td><td class="n">${row.latency_ms === null ? "–" : `${number(row.latency_ms)} ms`}</td><td class="n">${moment(row.fetched_at)}</td></tr>`)}</tbody></table>`;

/** Write a field of an item. @param {any} value */
const fieldText = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** The rows of items, a column for each field. @param {{rows: any[], crawl: string}} given */
function Items({ rows, crawl }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.item)))];
  return html`<table><thead><tr><th scope="col">Page</th><th scope="col">Rule</th>${names.map((name) => html`<th scope="col">${name}</th>`)}<th scope="col">Not as asked</th></tr></thead>
  <tbody>${rows.map((row) => html`<tr><th scope="row"><${Address} url=${row.url} crawl=${crawl} /></th><td>${row.rule}</td>${names.map((name) => html`<td class=${typeof row.item[name] === "number" ? "n" : ""}>${fieldText(row.item[name])}</td>`)}<td class="warn">${row.problems.join("; ")}</td></tr>`)}</tbody></table>`;
}

/** The rows of texts. @param {{rows: any[], crawl: string}} given */
const Texts = ({ rows, crawl }) => html`<table><thead><tr><th scope="col">Page</th><th scope="col">Title</th><th scope="col">Language</th><th scope="col">Text</th></tr></thead>
  <tbody>${rows.map((row) => html`<tr><th scope="row"><${Address} url=${row.url} crawl=${crawl} /></th><td>${row.title}</td><td>${row.language}</td><td>${row.left_out ? html`<span class="muted">${row.left_out}</span>` : (row.text ?? "").length > TEXT_CHARS ? html`<details><summary>${row.text.slice(0, TEXT_CHARS)}…</summary>${row.text}</details>` : row.text}</td></tr>`)}</tbody></table>`;

const SHOWN = { pages: Pages, items: Items, texts: Texts };
const NONE = {
  pages: "There are no pages yet.",
  items: "There are no items: a definition's `items` say what is taken out of pages.",
  texts: "There are no texts: `records.text = true` has them kept.",
};

/** Read a page that has rows, if there is any further one: one request reads so much and no more. @param {string} crawl @param {string} table @param {any} query */
async function pageOf(crawl, table, query) {
  for (;;) {
    const found = await ask(`/api/crawls/${encodeURIComponent(crawl)}/${table}`, { query });
    if (found[table].length || !found.next) return { rows: found[table], next: found.next };
    query = { ...query, cursor: found.next };
  }
}

/** @param {{of: string, query: URLSearchParams}} given */
export function Data({ of, query }) {
  const table = TABLES.find((one) => one === query.get("table")) ?? "pages";
  const outcome = table === "pages" ? query.get("outcome") : null;
  const valid = table === "items" ? query.get("valid") : null;
  const [read, setRead] = useState(/** @type {any} */ (null));
  const [cursors, setCursors] = useState(/** @type {(string | null)[]} */ ([null]));
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const at = cursors.length;
  // Rows of another page are none of this one.
  const place = [of, table, outcome, valid, at].join(" ");
  const page = read?.place === place ? read : null;
  useEffect(() => setCursors([null]), [of, table, outcome, valid]);
  useEffect(() => {
    let ended = false;
    setTrouble(null);
    pageOf(of, table, { outcome, valid, limit: table === "texts" ? TEXTS : ROWS, cursor: cursors.at(-1) }).then((found) => !ended && setRead({ ...found, place }), (found) => !ended && setTrouble(found));
    return () => { ended = true; };
  }, [of, table, outcome, valid, cursors]);
  const choose = (/** @type {any} */ given) => { location.hash = link(`data/${encodeURIComponent(of)}`, { table, outcome, valid, ...given }).slice(1); };
  const save = () => ask("/console/table", { body: { crawl: of } }).then((found) => { location.href = `/download/${found.ticket}`; });
  const Shown = SHOWN[/** @type {keyof typeof SHOWN} */ (table)];
  const first = (at - 1) * (table === "texts" ? TEXTS : ROWS);
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(of)}`}>${of}</a></p>
    <${Heading} title="Data">${!user() && html`<div class="actions"><a class="button" href=${link("query", { crawl: of })}>Ask with SQL</a><${Act} label="All pages as CSV" act=${save} done=${setTrouble} /></div>`}</${Heading}>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Table <select value=${table} onChange=${(/** @type {any} */ event) => choose({ table: event.target.value })}>${TABLES.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      ${table === "pages" && html`<label>Outcome <select value=${outcome ?? ""} onChange=${(/** @type {any} */ event) => choose({ outcome: event.target.value })}><option value="">any</option>${OUTCOMES.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`}
      ${table === "items" && html`<label>As its rule asks <select value=${valid ?? ""} onChange=${(/** @type {any} */ event) => choose({ valid: event.target.value })}><option value="">either</option><option value="yes">yes</option><option value="no">no</option></select></label>`}
      <span class="muted" role="status">${page && (page.rows.length ? `${plural(page.rows.length, "row")}, ${at === 1 && !page.next ? "all of them" : `page ${number(at)}`}` : "")}</span>
    </form>
    <${Warning} trouble=${trouble} />
    ${!page && !trouble && html`<${Loading} />`}
    ${page && !page.rows.length && html`<div class="empty"><p>${valid || outcome ? "There are none like that." : NONE[/** @type {keyof typeof NONE} */ (table)]}</p></div>`}
    ${page?.rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${`Rows of ${table}, from ${number(first + 1)}`}><${Shown} rows=${page.rows} crawl=${of} /></div>`}
    <div class="actions"><button type="button" disabled=${at === 1} onClick=${() => setCursors(cursors.slice(0, -1))}>Before</button><button type="button" disabled=${!page?.next} onClick=${() => setCursors([...cursors, page.next])}>Next</button></div>`;
}
