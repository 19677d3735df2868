// The pages, items and texts of a run, a page of rows at a time, and downloads.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, user, link, number, plural, moment, words, Heading, Warning, Loading } from "/lib.js";
import { size, spanText, Act, Address } from "/parts.js";

const TABLES = ["pages", "items", "texts"];
const OUTCOMES = ["fetched", "unchanged", "redirected", "skipped", "failed"];
const FORMS = [["csv", "CSV"], ["jsonl", "JSON lines"], ["parquet", "Parquet"]];
const TEXTS = 20;
// A phone shows a row as a card.
const ROWS = matchMedia("(max-width: 760px)").matches ? 25 : 100;
const TEXT_CHARS = 280;

/** A table that a click on a column head sorts. @param {{title: string, rows: any[], columns: {title: string, value: (row: any) => any, cell: (row: any) => any, n?: boolean, wide?: boolean}[]}} given */
function Sorted({ title, rows, columns }) {
  const [order, setOrder] = useState({ by: -1, down: false });
  const of = columns[order.by];
  const sorted = of ? [...rows].sort((one, other) => {
    const [a, b] = [of.value(one), of.value(other)];
    if (a === b) return 0;
    // Rows without a value come last in both directions.
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return (a < b ? -1 : 1) * (order.down ? -1 : 1);
  }) : rows;
  return html`<table class="rows" role="table"><caption class=${title === "pages" ? "hidden" : ""}>${title}</caption><thead role="rowgroup"><tr role="row">${columns.map((column, place) => html`<th scope="col" role="columnheader" class=${column.n ? "n" : ""} aria-sort=${order.by === place ? (order.down ? "descending" : "ascending") : null}><button type="button" class="fold" onClick=${() => setOrder({ by: place, down: order.by === place && !order.down })}>${column.title}${order.by === place && html`<span aria-hidden="true"> ${order.down ? "▾" : "▴"}</span>`}</button></th>`)}</tr></thead>
    <tbody role="rowgroup">${sorted.map((row) => html`<tr role="row">${columns.map((column, place) => (place ? html`<td role="cell" class=${column.n ? "n" : column.wide ? "wide" : ""} data-name=${column.title}>${column.cell(row)}</td>` : html`<th scope="row" role="rowheader">${column.cell(row)}</th>`))}</tr>`)}</tbody></table>`;
}

/** @param {{rows: any[], crawl: string}} given */
const Pages = ({ rows, crawl }) => html`<${Sorted} title="pages" rows=${rows} columns=${[
  { title: "URL", value: (/** @type {any} */ row) => row.url, cell: (/** @type {any} */ row) => html`<${Address} url=${row.url} crawl=${crawl} />` },
  { title: "Title", wide: true, value: (/** @type {any} */ row) => row.title, cell: (/** @type {any} */ row) => row.title ?? (row.error && html`<span class="muted">${row.error}</span>`) },
  { title: "Outcome", value: (/** @type {any} */ row) => `${row.outcome} ${row.reason}`, cell: (/** @type {any} */ row) => html`<span class=${row.outcome === "failed" ? "bad" : ""}>${row.outcome}${row.reason !== "ok" && `: ${words(row.reason)}`}</span>` },
  { title: "Status", n: true, value: (/** @type {any} */ row) => row.status, cell: (/** @type {any} */ row) => row.status },
  { title: "Depth", n: true, value: (/** @type {any} */ row) => row.depth, cell: (/** @type {any} */ row) => number(row.depth) },
  { title: "Size", n: true, value: (/** @type {any} */ row) => row.bytes, cell: (/** @type {any} */ row) => (row.bytes === null ? "–" : size(row.bytes)) },
  { title: "Took", n: true, value: (/** @type {any} */ row) => row.latency_ms, cell: (/** @type {any} */ row) => (row.latency_ms === null ? "–" : spanText(row.latency_ms)) },
  { title: "At", n: true, value: (/** @type {any} */ row) => row.fetched_at, cell: (/** @type {any} */ row) => moment(row.fetched_at) },
]} />`;

/** @param {any} value */
const fieldText = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** The rows of items, a table for each rule. @param {{rows: any[], crawl: string, of?: string}} given */
const Items = ({ rows, crawl }) => html`${[...new Set(rows.map((row) => row.rule))].map((rule) => html`<${OfRule} key=${rule} rule=${rule} rows=${rows.filter((row) => row.rule === rule)} crawl=${crawl} />`)}`;

/** @param {{rule: string, rows: any[], crawl: string}} given */
function OfRule({ rule, rows, crawl }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.item)))];
  const faulty = rows.some((row) => row.problems.length);
  return html`<${Sorted} title=${rule} rows=${rows} columns=${[
    { title: "Page", value: (/** @type {any} */ row) => row.url, cell: (/** @type {any} */ row) => html`<${Address} url=${row.url} crawl=${crawl} />` },
    ...names.map((name) => ({ title: name, value: (/** @type {any} */ row) => row.item[name], cell: (/** @type {any} */ row) => fieldText(row.item[name]), n: rows.some((row) => typeof row.item[name] === "number") })),
    ...(faulty ? [{ title: "Problems", wide: true, value: (/** @type {any} */ row) => row.problems.join("; "), cell: (/** @type {any} */ row) => html`<span class="warn">${row.problems.join("; ")}</span>` }] : []),
  ]} />`;
}

/** @param {{rows: any[], crawl: string}} given */
const Texts = ({ rows, crawl }) => html`<table class="rows" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Page</th><th scope="col" role="columnheader">Title</th><th scope="col" role="columnheader">Language</th><th scope="col" role="columnheader">Text</th></tr></thead>
  <tbody role="rowgroup">${rows.map((row) => html`<tr role="row"><th scope="row" role="rowheader"><${Address} url=${row.url} crawl=${crawl} /></th><td role="cell" class="wide" data-name="Title">${row.title}</td><td role="cell" data-name="Language">${row.language}</td><td role="cell" class="wide">${row.left_out ? html`<span class="muted">${row.left_out}</span>` : (row.text ?? "").length > TEXT_CHARS ? html`<details><summary>${row.text.slice(0, TEXT_CHARS)}…</summary>${row.text}</details>` : row.text}</td></tr>`)}</tbody></table>`;

const SHOWN = { pages: Pages, items: Items, texts: Texts };
const NONE = {
  pages: "No pages yet. They appear here while the run fetches them.",
  items: "No items. Add item rules to the definition to extract some.",
  texts: "No texts. Set records.text = true in the definition to store them.",
};

/** Read the next page that has rows: one request reads a limited number of records. @param {string} crawl @param {string} table @param {any} query */
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
  // Rows of another page are not shown on this one.
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
  const [form, setForm] = useState("csv");
  const save = (/** @type {string | null} */ rule) => () => ask("/console/table", { body: { crawl: of, form, ...(rule && { rule }) } }).then((found) => { location.href = `/download/${found.ticket}`; });
  const rules = table === "items" ? [...new Set((page?.rows ?? []).map((/** @type {any} */ row) => row.rule))] : [];
  const Shown = SHOWN[/** @type {keyof typeof SHOWN} */ (table)];
  const first = (at - 1) * (table === "texts" ? TEXTS : ROWS);
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(of)}`}>${of}</a></p>
    <${Heading} title="Data">${!user() && html`<div class="actions"><a class="button" href=${link("query", { crawl: of })}>Query with SQL</a><label class="saved">Format <select value=${form} onChange=${(/** @type {any} */ event) => setForm(event.target.value)}>${FORMS.map(([one, title]) => html`<option value=${one}>${title}</option>`)}</select></label>${table === "items" ? rules.map((rule) => html`<${Act} key=${rule} label=${`Download ${rule}`} act=${save(rule)} done=${setTrouble} />`) : html`<${Act} label="Download pages" act=${save(null)} done=${setTrouble} />`}</div>`}</${Heading}>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Table <select value=${table} onChange=${(/** @type {any} */ event) => choose({ table: event.target.value })}>${TABLES.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      ${table === "pages" && html`<label>Outcome <select value=${outcome ?? ""} onChange=${(/** @type {any} */ event) => choose({ outcome: event.target.value })}><option value="">any</option>${OUTCOMES.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`}
      ${table === "items" && html`<label>Valid <select value=${valid ?? ""} onChange=${(/** @type {any} */ event) => choose({ valid: event.target.value })}><option value="">all</option><option value="yes">yes</option><option value="no">no</option></select></label>`}
      <span class="muted" role="status">${page && (page.rows.length ? `${plural(page.rows.length, "row")}, ${at === 1 && !page.next ? "all shown" : `page ${number(at)}`}` : "")}</span>
    </form>
    <${Warning} trouble=${trouble} />
    ${!page && !trouble && html`<${Loading} />`}
    ${page && !page.rows.length && html`<div class="empty"><p>${valid || outcome ? `No ${table} match this filter.` : NONE[/** @type {keyof typeof NONE} */ (table)]}</p></div>`}
    ${page?.rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${`Rows of ${table}, from ${number(first + 1)}`}><${Shown} rows=${page.rows} crawl=${of} /></div>`}
    <div class="actions"><button type="button" disabled=${at === 1} onClick=${() => setCursors(cursors.slice(0, -1))}>Previous</button><button type="button" disabled=${!page?.next} onClick=${() => setCursors([...cursors, page.next])}>Next</button></div>`;
}
