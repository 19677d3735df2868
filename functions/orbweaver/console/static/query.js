// SQL over exports: tables, columns, saved and recent queries, rows, a chart, and a download.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { ask, number, plural, Heading, Warning, Loading, Said } from "/lib.js";
import { size, spanText, Act } from "/parts.js";
import { Plot } from "/plot.js";

const RECENT = "orbweaver-console-queries", RECENT_MAX = 20, LINE_CHARS = 60;
const EXPORTS = "Queries read exported runs. `orbweaver crawl`, `orbweaver serve` and `orbweaver console --workers N` export each run when it ends. For other runs, use `orbweaver export --crawl ID`.";
const FIRST = "SELECT outcome, reason, count(*) AS pages\nFROM pages\nGROUP BY ALL\nORDER BY pages DESC";

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** The queries of this tab, newest first. @returns {string[]} */
const recent = () => JSON.parse(sessionStorage.getItem(RECENT) ?? "[]");
/** @param {string} sql */
const remember = (sql) => sessionStorage.setItem(RECENT, JSON.stringify([sql, ...recent().filter((one) => one !== sql)].slice(0, RECENT_MAX)));
/** @param {HTMLTextAreaElement} field */
const wordIn = (field) => /\w*$/.exec(field.value.slice(0, field.selectionStart))?.[0] ?? "";

/** Names that a click inserts into the query. @param {{names: string[], insert: (name: string) => void}} given */
const Names = ({ names, insert }) => html`<span class="names">${names.map((name) => html`<button type="button" class="quiet" title=${`Insert ${name}`} onClick=${() => insert(name)}><code>${name}</code></button>`)}</span>`;

/** @param {{tables: any[], fetched: boolean, choose: (name: string) => void, insert: (name: string) => void}} given */
const Tables = ({ tables, fetched, choose, insert }) => html`<section class="panel" aria-labelledby="tables"><div class="heading"><h2 id="tables">Tables</h2><span class="muted">Click a name to insert it.${fetched && " A query downloads the files of its tables."}</span></div>
  ${tables.map((table) => html`<details><summary><code>${table.name}</code> <span class="muted">${plural(table.rows, "row")}${table.rows > 0 && `, ${size(table.bytes)}`}</span></summary>
    <p><button type="button" class="quiet" aria-label=${`First rows of ${table.name}`} onClick=${() => choose(table.name)}>First rows</button></p>
    <dl class="settings">${[...table.columns, { name: "dt", type: "day of the export" }].map((column) => html`<dt><${Names} names=${[column.name]} insert=${insert} /></dt><dd>${column.type}</dd>`)}</dl></details>`)}</section>`;

/** @param {{found: any}} given */
function Rows({ found }) {
  const { columns, rows, more, cut, took_ms, peak_bytes } = found;
  return html`<p role="status">${more ? `First ${plural(rows.length, "row")}; the CSV file has all.` : plural(rows.length, "row")} <span class="muted">${spanText(took_ms)}${peak_bytes && `, ${size(peak_bytes)} of memory`}${cut > 0 && `; ${plural(cut, "long text")} shortened here, complete in the file`}</span></p>
    ${rows.length > 0 && html`<div class="scroll tall" tabindex="0" role="region" aria-label="Rows"><table><thead><tr>${columns.map((/** @type {any} */ column) => html`<th scope="col" class=${column.number ? "n" : ""}>${column.name}</th>`)}</tr></thead>
      <tbody>${rows.map((/** @type {any[]} */ row) => html`<tr>${row.map((cell, place) => html`<td class=${columns[place].number ? "n" : "cell"}>${cell === null ? html`<span class="muted">none</span>` : cell}</td>`)}</tr>`)}</tbody></table></div>`}`;
}

/** @param {{query: URLSearchParams}} given */
export function Query({ query }) {
  const crawl = query.get("crawl");
  const [known, setKnown] = useState(/** @type {any} */ (null));
  const [sql, setSql] = useState(crawl ? `SELECT url, outcome, status, title\nFROM pages\nWHERE crawl = ${quoted(crawl)}` : FIRST);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [asked, setAsked] = useState("");
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => { ask("/console/tables").then(setKnown, setTrouble); }, []);
  const go = async () => {
    if (busy || !sql.trim()) return;
    setBusy(true);
    try {
      setFound(await ask("/console/query", { body: { sql } }));
      setAsked(sql);
      remember(sql);
      setTrouble(null);
    } catch (why) {
      // The rows of an earlier query do not belong below this problem.
      setFound(null);
      setTrouble(why);
    } finally {
      setBusy(false);
    }
  };
  const save = () => ask("/console/query/file", { body: { sql: asked } }).then((given) => { location.href = `/download/${given.ticket}`; });
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [word, setWord] = useState("");
  /** Put a name at the caret, in place of the word before it where that is its beginning. @param {string} name */
  const insert = (name) => {
    const at = /** @type {HTMLTextAreaElement} */ (field.current), typed = wordIn(at);
    const begun = typed && name.toLowerCase().startsWith(typed.toLowerCase()) ? typed.length : 0;
    at.setRangeText(name, at.selectionStart - begun, at.selectionEnd, "end");
    setSql(at.value);
    setWord("");
    at.focus();
  };
  const tables = known?.tables ?? [];
  const names = [...new Set(tables.flatMap((/** @type {any} */ table) => [table.name, ...table.columns.map((/** @type {any} */ column) => column.name)]))];
  const fits = word ? names.filter((name) => name.startsWith(word.toLowerCase()) && name !== word).slice(0, 8) : [];
  const type = (/** @type {any} */ event) => { setSql(event.target.value); setWord(wordIn(event.target)); };
  const key = (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); go(); } else if (event.key === "Tab" && !event.shiftKey && fits.length) { event.preventDefault(); insert(fits[0]); } };
  if (!known) return html`<${Heading} title="Query" /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  if (known.why) return html`<${Heading} title="Query" /><div class="empty"><p>No run has been exported yet.</p><p class="muted"><${Said} text=${EXPORTS} /></p><p class="muted"><${Said} text=${known.why} /></p></div>`;
  return html`<${Heading} title="Query"><span class="muted">one SELECT in DuckDB SQL, over exported runs only</span></${Heading}>
    <div class="pair top"><section class="panel" aria-labelledby="sql"><div class="heading"><h2 id="sql">SQL</h2>
        <label class="saved">Saved <select value="" onChange=${(/** @type {any} */ event) => { const one = known.saved.find((/** @type {any} */ one) => one.name === event.target.value); if (one) setSql(one.sql); event.target.value = ""; }}><option value="">choose…</option>${known.saved.map((/** @type {any} */ one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>
        ${recent().length > 0 && html`<label class="saved">Recent <select value="" onChange=${(/** @type {any} */ event) => { if (event.target.value) setSql(event.target.value); event.target.value = ""; }}><option value="">choose…</option>${recent().map((one) => html`<option value=${one}>${one.replace(/\s+/g, " ").slice(0, LINE_CHARS)}</option>`)}</select></label>`}</div>
        <textarea class="sql" rows="10" aria-labelledby="sql" aria-describedby="how" ref=${field} value=${sql} onInput=${type} onKeyDown=${key} spellcheck=${false} autocomplete="off"></textarea>
        <div class="suggested">${fits.length > 0 && html`<${Names} names=${fits} insert=${insert} />`}</div>
        <div class="actions"><button type="button" class="main" disabled=${!sql.trim()} aria-disabled=${busy} aria-busy=${busy} onClick=${go}>${busy ? "Running…" : "Run"}</button>
          ${found && html`<${Act} label="Download CSV" act=${save} done=${setTrouble} />`}<span class="muted" id="how">Ctrl+Enter runs the query, Tab completes a name. Limits: 30 seconds, 512 MB of memory. Times are in UTC.</span></div></section>
      <${Tables} tables=${known.tables} fetched=${known.fetched} insert=${insert} choose=${(/** @type {string} */ name) => setSql(`SELECT *\nFROM ${name}\nLIMIT 100`)} /></div>
    <${Warning} trouble=${trouble} />
    ${found && html`<${Plot} key=${asked} found=${found} /><${Rows} found=${found} />`}`;
}
