// A new crawl: a form and the same as TOML, problems beside their keys, a preview of the first page
// with the fate of its links, an estimate of the cost, and the start.
import { html, useState, useEffect, useLayoutEffect, useRef } from "/vendor/preact-htm.js";
import { ask, user, steers, number, plural, dollars, duration, words, Heading, Warning } from "/lib.js";
import { numberIn, Act, CHOICES, LABELS } from "/parts.js";
import { Items } from "/items.js";

const TYPED_MS = 400, DRAFT = "orbweaver-console-draft";
const FIRST = { seeds: [], limits: { pages: 1000 } };
const isFirst = (/** @type {any} */ document) => JSON.stringify(document) === JSON.stringify(FIRST);

/** Keys of the form, each with its kind and default; the others are edited as TOML. @type {[string, [string, string, string][]][]} */
const PARTS = [
  ["Scope", [
    ["seeds", "list", "one URL per line"],
    ["name", "text", "the first host"],
    ["scope.links", "choice", "host"],
    ["scope.include", "list", "regular expressions, one per line"],
    ["scope.exclude", "list", "regular expressions, one per line"],
  ]],
  ["Limits", [
    ["limits.pages", "number", "1,000,000"],
    ["limits.depth", "number", "20"],
    ["limits.dollars", "number", "no limit"],
    ["limits.duration", "text", "7d"],
  ]],
  ["Requests", [
    ["politeness.delay", "text", "1s"],
    ["politeness.concurrency", "number", "1"],
    ["politeness.robots", "choice", "true"],
    ["render.mode", "choice", "never"],
  ]],
  ["Results", [
    ["records.bodies", "choice", "html"],
    ["records.text", "choice", "false"],
  ]],
];

/** @param {any} document @param {string} key */
const at = (document, key) => key.split(".").reduce((value, part) => value?.[part], document);

/** Copy a document with a key set, or without it. @param {any} document @param {string} key @param {any} value */
function put(document, key, value) {
  const [name, inner] = key.split(".");
  const next = { ...document };
  if (inner) {
    const table = { ...next[name] };
    if (value === undefined) delete table[inner]; else table[inner] = value;
    if (Object.keys(table).length) next[name] = table; else delete next[name];
  } else if (value === undefined) delete next[name];
  else next[name] = value;
  return next;
}

/** @param {any} value @param {string} kind */
const written = (value, kind) => (value === undefined || value === null ? "" : kind === "list" && Array.isArray(value) ? value.join("\n") : String(value));

/** Read a field; undefined if it is empty. @param {string} text @param {string} kind */
function valueOf(text, kind) {
  if (kind === "list") return text.trim() ? text.split("\n") : undefined;
  const plain = text.trim();
  if (!plain) return undefined;
  if (plain === "true" || plain === "false") return plain === "true";
  return kind === "number" ? numberIn(plain) : plain;
}

/** @param {{path: string, text: string}[]} problems @param {string} key */
const of = (problems, key) => problems.filter(({ path }) => path === key || path.startsWith(`${key}[`) || path.startsWith(`${key}.`));

/** @param {{field: any, document: any, problems: any[], change: (key: string, value: any) => void}} given */
function Field({ field: [key, kind, told], document, problems, change }) {
  const known = written(at(document, key), kind);
  // The text as typed, until the document has it.
  const [text, setText] = useState(known);
  const busy = useRef(false);
  useEffect(() => { if (!busy.current) setText(known); }, [known]);
  const typed = (/** @type {any} */ event) => { setText(event.target.value); change(key, valueOf(event.target.value, kind)); };
  const found = of(problems, key);
  const given = { value: text, onInput: typed, "aria-invalid": found.length ? "true" : null, "aria-describedby": found.length ? `problem-${key}` : null, onFocus: () => { busy.current = true; }, onBlur: () => { busy.current = false; setText(known); } };
  return html`<label class=${kind === "list" ? "long" : ""}><span>${LABELS[key]} <code class="muted">${key}</code></span>
    ${kind === "list" ? html`<textarea rows="2" ...${given} placeholder=${told} spellcheck=${false}></textarea>`
    : kind === "choice" ? html`<select ...${given} onInput=${null} onChange=${typed}><option value="">${CHOICES[key][told]} (default)</option>${Object.entries(CHOICES[key]).filter(([one]) => one !== told || one === text).map(([one, words]) => html`<option value=${one}>${words}</option>`)}</select>`
    : html`<input ...${given} placeholder=${told} autocomplete="off" spellcheck=${false} inputmode=${kind === "number" ? "decimal" : null} />`}
    ${found.length > 0 && html`<span id=${`problem-${key}`} class="bad">${found.map(({ text: why }) => html`<span class="line-of">${why}</span>`)}</span>`}</label>`;
}

/** @param {{problems: any[], lines: Record<string, number>, broken: any}} given */
function Problems({ problems, lines, broken }) {
  const lineOf = (/** @type {string} */ path) => {
    for (let key = path; key; key = key.slice(0, Math.max(key.lastIndexOf("."), key.lastIndexOf("["), 0))) if (key in lines) return lines[key];
    return null;
  };
  const found = broken ? [{ path: "", text: `not valid TOML: ${broken.text}`, line: broken.line }] : problems.map((one) => ({ ...one, line: lineOf(one.path) }));
  if (!found.length) return null;
  return html`<div role="status"><ul class="problems">${found.map(({ path, text, line }) => html`<li>${line && html`<span class="muted">line ${line}</span> `}${path && html`<code>${path}</code>`} ${text}</li>`)}</ul></div>`;
}

/** @param {{found: any, old: boolean}} given */
function Preview({ found, old }) {
  const [only, setOnly] = useState("");
  const links = found.links.filter((/** @type {any} */ one) => !only || (one.refused ?? "taken") === only);
  return html`<section class="panel" aria-labelledby="preview"><div class="heading"><h2 id="preview">The first page</h2>${old && html`<span class="warn" role="status">The definition has changed: preview again.</span>`}<span class="url">${found.url ?? ""}</span></div>
    <dl class="settings">
      ${found.redirects.length > 0 && html`<dt>redirected from</dt><dd>${found.redirects.map((/** @type {string} */ url) => html`<div class="url">${url}</div>`)}</dd>`}
      ${found.status && html`<dt>status</dt><dd>${found.status}</dd>`}
      ${found.title && html`<dt>title</dt><dd>${found.title}</dd>`}
      ${found.robots && html`<dt>robots.txt</dt><dd>${found.robots}</dd>`}
      ${found.why && html`<dt>no page</dt><dd class="bad">${found.why}</dd>`}
    </dl>
    ${!found.why && html`<div class="filters"><label>Links <select value=${only} onChange=${(/** @type {any} */ event) => setOnly(event.target.value)}>
      <option value="">all</option>${Object.entries(found.counts).map(([reason, count]) => html`<option value=${reason}>${words(reason)}: ${number(/** @type {any} */ (count))}</option>`)}</select></label>
      <span>${Object.entries(found.counts).map(([reason, count]) => `${number(/** @type {any} */ (count))} ${words(reason)}`).join(", ") || "The page has no links."}</span></div>`}
    ${links.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Links of the first page"><table><thead><tr><th scope="col">Link</th><th scope="col">Decision</th><th scope="col">Rule</th></tr></thead><tbody>
      ${links.map((/** @type {any} */ one) => html`<tr><th scope="row"><span class="url">${one.url}</span></th><td class=${one.refused ? "warn" : "good"}>${one.refused ? words(one.refused) : "taken"}</td><td>${one.rule}</td></tr>`)}</tbody></table></div>`}
    ${found.more > 0 && html`<p class="muted">${plural(found.more, "more link")} not listed; the counts include them.</p>`}
  </section>`;
}

export function New() {
  const [draft, setDraft] = useState(/** @type {any} */ ({ toml: "", document: FIRST, lines: {}, broken: null }));
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const turn = useRef(0);
  const timer = useRef(0);
  /** Read or write a draft on the server and check it; a later edit wins. @param {any} given @param {number} wait */
  function go(given, wait) {
    const mine = ++turn.current;
    clearTimeout(timer.current);
    setChecked(null);
    timer.current = setTimeout(async () => {
      try {
        const found = await ask("/console/definition", { body: given });
        if (mine !== turn.current) return;
        // Typed TOML stays as it is; the form keeps its values while the TOML is invalid.
        setDraft((/** @type {any} */ was) => ({ ...found, document: found.document ?? was.document }));
        const told = found.document && await ask("/api/check", { body: found.document });
        if (mine !== turn.current) return;
        setChecked(told);
        setTrouble(null);
      } catch (found) {
        if (mine === turn.current) setTrouble(found);
      }
    }, wait);
  }
  const anew = () => go({ document: FIRST }, 0);
  // The tab keeps the draft until the crawl starts.
  // A layout effect runs before the first paint, so the stored draft cannot replace typed text.
  useLayoutEffect(() => { const toml = sessionStorage.getItem(DRAFT); if (steers()) go(toml ? { toml } : { document: FIRST }, 0); return () => clearTimeout(timer.current); }, []);
  useEffect(() => { if (draft.toml) sessionStorage.setItem(DRAFT, draft.toml); }, [draft.toml]);
  const leave = (/** @type {string} */ to) => { sessionStorage.removeItem(DRAFT); location.hash = to; };
  const change = (/** @type {string} */ key, /** @type {any} */ value) => {
    const document = put(draft.document, key, value);
    setDraft({ ...draft, document, broken: null });
    go({ document }, TYPED_MS);
  };
  const typed = (/** @type {any} */ event) => { setDraft({ ...draft, toml: event.target.value }); go({ toml: event.target.value }, TYPED_MS); };
  const problems = checked?.problems ?? [];
  // An untouched form shows no problems.
  const shown = isFirst(draft.document) ? [] : problems;
  const ready = Boolean(checked) && !problems.length && !draft.broken;
  const recurs = ready && draft.document.schedule;
  const start = async () => { const run = await ask("/api/crawls", { body: draft.document }); leave(`#/run/${encodeURIComponent(run.id)}`); };
  const recur = async () => { await ask("/console/schedules", { body: { document: draft.document } }); leave("#/schedules"); };
  if (!steers()) return html`<${Heading} title="New crawl" /><div class="empty"><p>Only users in the group <code>steer</code> can start crawls.</p></div>`;
  return html`<${Heading} title="New crawl"><div class="actions">
      <button type="button" class="quiet" onClick=${anew}>Clear</button>
      ${!user() && html`<${Act} label="Preview" disabled=${!ready} act=${() => ask("/console/preview", { body: { document: draft.document } }).then((found) => setPreview({ found, of: draft.toml }))} done=${setTrouble} />`}
      ${recurs && user() ? html`<span>To save a schedule, use <code>orbweaver schedule put</code>.</span>` : recurs ? html`<${Act} kind="main" label="Save schedule" act=${recur} done=${setTrouble} />` : html`<${Act} kind="main" label="Start" disabled=${!ready} act=${start} done=${setTrouble} />`}</div></${Heading}>
    <p class="muted">Form and TOML stay in sync; editing the form rewrites the TOML. ${user() ? "To preview the first page, use a console on your own machine." : "Preview fetches one page, within the host's rate limit."}</p>
    <${Warning} trouble=${trouble} />
    <div class="pair halves">
      <form class="panel fields" aria-label="Definition" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        ${PARTS.map(([title, fields]) => html`<h2>${title}</h2><div class="row">${fields.map((field) => html`<${Field} key=${field[0]} field=${field} document=${draft.document} problems=${shown} change=${change} />`)}</div>`)}
        <${Items} rules=${Array.isArray(draft.document.items) ? draft.document.items : []} problems=${of(shown, "items")} change=${(/** @type {any} */ rules) => change("items", rules)} />
      </form>
      <section class="panel" aria-labelledby="toml"><div class="heading"><h2 id="toml">crawl.toml</h2></div>
        <textarea class="toml" rows="18" aria-labelledby="toml" value=${draft.toml} onInput=${typed} spellcheck=${false} autocomplete="off"></textarea>
        <${Problems} problems=${shown} lines=${draft.lines} broken=${draft.broken} />
        ${ready && html`<p role="status"><strong>${checked.name}</strong>: ${plural(checked.seeds, "seed")}. Estimate: ${plural(checked.estimate.pages, "page")} cost ${dollars(checked.estimate.usd)} on AWS and take at least ${duration(checked.estimate.least_s)}.</p>`}
        ${recurs && html`<p class="muted">[schedule] repeats the crawl. Remove the table to run it once.</p>`}
      </section>
    </div>
    ${preview && html`<${Preview} found=${preview.found} old=${preview.of !== draft.toml} />`}`;
}
