// SQL over exports: tables and their columns, saved queries, rows, a chart of them, all rows as a file.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, number, plural, clock, Heading, Warning, Loading } from "/lib.js";
import { size, Act } from "/parts.js";
import { Plot } from "/plot.js";

const FIRST = "SELECT outcome, reason, count(*) AS pages\nFROM pages\nGROUP BY ALL\nORDER BY pages DESC";

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** @param {{tables: any[], fetched: boolean, choose: (name: string) => void}} given */
const Tables = ({ tables, fetched, choose }) => html`<section class="panel" aria-labelledby="tables"><div class="heading"><h2 id="tables">Tables</h2><span class="muted">of exports${fetched && "; the files of those that a query names are fetched"}</span></div>
  ${tables.map((table) => html`<details><summary><code>${table.name}</code> <span class="muted">${plural(table.rows, "row")}${table.rows > 0 && `, ${size(table.bytes)}`}</span></summary>
    <p><button type="button" class="quiet" aria-label=${`First rows of ${table.name}`} onClick=${() => choose(table.name)}>First rows</button></p>
    <dl class="settings">${[...table.columns, { name: "dt", type: "the day of the export" }].map((column) => html`<dt>${column.name}</dt><dd>${column.type}</dd>`)}</dl></details>`)}</section>`;

/** @param {{found: any}} given */
function Rows({ found }) {
  const { columns, rows, more, cut, took_ms, peak_bytes } = found;
  return html`<p role="status">${more ? `The first ${plural(rows.length, "row")}: the file has all.` : plural(rows.length, "row")} <span class="muted">${took_ms < 1000 ? `${number(took_ms)} ms` : clock(took_ms / 1000)}${peak_bytes && `, ${size(peak_bytes)} of memory`}${cut > 0 && `; ${plural(cut, "long text is", "long texts are")} cut here, and not in the file`}</span></p>
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
      setTrouble(null);
    } catch (why) {
      // Rows of another query would stand below what is wrong with this one.
      setFound(null);
      setTrouble(why);
    } finally {
      setBusy(false);
    }
  };
  const save = () => ask("/console/query/file", { body: { sql: asked } }).then((given) => { location.href = `/download/${given.ticket}`; });
  const key = (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); go(); } };
  if (!known) return html`<${Heading} title="Query" /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  if (known.why) return html`<${Heading} title="Query" /><div class="empty"><p>SQL asks exports, and there are none yet.</p><p class="muted">${known.why}</p></div>`;
  return html`<${Heading} title="Query"><span class="muted">one SELECT over exports, of DuckDB's SQL</span></${Heading}>
    <div class="pair top"><section class="panel" aria-labelledby="sql"><div class="heading"><h2 id="sql">SQL</h2>
        <label class="saved">Saved <select value="" onChange=${(/** @type {any} */ event) => { const one = known.saved.find((/** @type {any} */ one) => one.name === event.target.value); if (one) setSql(one.sql); event.target.value = ""; }}><option value="">choose…</option>${known.saved.map((/** @type {any} */ one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label></div>
        <textarea class="sql" rows="10" aria-labelledby="sql" aria-describedby="how" value=${sql} onInput=${(/** @type {any} */ event) => setSql(event.target.value)} onKeyDown=${key} spellcheck=${false} autocomplete="off"></textarea>
        <div class="actions"><button type="button" class="main" disabled=${!sql.trim()} aria-disabled=${busy} aria-busy=${busy} onClick=${go}>${busy ? "Asking…" : "Run"}</button>
          ${found && html`<${Act} label="All rows as CSV" act=${save} done=${setTrouble} />`}<span class="muted" id="how">Ctrl-Enter runs it, for half a minute and half a gigabyte at most; it reads these tables and nothing else.</span></div></section>
      <${Tables} tables=${known.tables} fetched=${known.fetched} choose=${(/** @type {string} */ name) => setSql(`SELECT *\nFROM ${name}\nLIMIT 100`)} /></div>
    <${Warning} trouble=${trouble} />
    ${found && html`<${Plot} key=${asked} found=${found} /><${Rows} found=${found} />`}`;
}
