// Item rules, tried on stored pages of a run while a person types: the items of one page, and how
// often each field is found on up to fifty pages.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { ask, number, percent, plural, Heading, Warning, Loading } from "/lib.js";
import { Act, valueText } from "/parts.js";
import { Stored } from "/explain.js";

const TYPED_MS = 500, PAGES = 100;
const FIRST = `[[items]]
name = "pages"
match = "/"

[items.fields]
title = { css = "h1", required = true }
links = { css = "a", attribute = "href", type = "url", list = true }
`;

/** @param {{rule: string, items: any[]}} given */
function OfRule({ rule, items }) {
  const names = [...new Set(items.flatMap((item) => Object.keys(item.fields)))];
  const faulty = items.some((item) => item.problems.length);
  return html`<h3>${rule}</h3><div class="scroll" tabindex="0" role="region" aria-label=${`Items of ${rule}`}><table><thead><tr><th scope="col" class="n">Item</th>${names.map((name) => html`<th scope="col">${name}</th>`)}${faulty && html`<th scope="col">Problems</th>`}</tr></thead><tbody>
    ${items.map((item) => html`<tr><th scope="row" class="n">${number(item.place)}</th>${names.map((name) => html`<td class=${typeof item.fields[name] === "number" ? "n" : ""}>${item.fields[name] === null || item.fields[name] === undefined ? "" : valueText(item.fields[name])}</td>`)}${faulty && html`<td class="warn">${item.problems.join("; ")}</td>`}</tr>`)}</tbody></table></div>`;
}

/** @param {{page: any}} given */
const Found = ({ page }) => html`<section class="panel" aria-labelledby="found"><div class="heading"><h2 id="found">Found on this page</h2><span class="muted">${page.why ?? plural(page.items.length, "item")}</span></div>
  ${[...new Set(page.items.map((/** @type {any} */ item) => item.table))].map((/** @type {any} */ rule) => html`<${OfRule} rule=${rule} items=${page.items.filter((/** @type {any} */ item) => item.table === rule)} />`)}</section>`;

/** Whether a rule matches a URL; a browser cannot read every pattern. @param {any} rule @param {string} url */
const fits = (rule, url) => { try { return new RegExp(rule.match).test(url); } catch { return false; } };

/** @param {{coverage: any}} given */
const Covered = ({ coverage }) => html`<section class="panel" aria-labelledby="coverage"><div class="heading"><h2 id="coverage">On ${plural(coverage.pages, "stored page")}</h2>${Object.entries(coverage.unread).map(([why, count]) => html`<span class="muted">${plural(/** @type {any} */ (count), "page")} not read: ${why}</span>`)}</div>
  ${coverage.rules.map((/** @type {any} */ rule) => html`<h3>${rule.rule}: ${plural(rule.items, "item")} on ${number(rule.pages_found)} of ${plural(rule.pages, "page")}${rule.invalid > 0 && html`, <span class="warn">${number(rule.invalid)} invalid</span>`}</h3>
    ${Object.keys(rule.problems).length > 0 && html`<ul class="problems">${Object.entries(rule.problems).map(([text, count]) => html`<li>${number(/** @type {any} */ (count))} × ${text}</li>`)}</ul>`}
    <div class="scroll"><table><thead><tr><th scope="col">Field</th><th scope="col" class="n">Found</th><th scope="col" class="n">Share</th></tr></thead><tbody>${Object.entries(rule.fields).map(([name, count]) => html`<tr><th scope="row">${name}</th><td class="n">${number(/** @type {any} */ (count))} of ${number(rule.items)}</td><td class="n">${percent(/** @type {any} */ (count), rule.items)}</td></tr>`)}</tbody></table></div>`)}
</section>`;

/** @param {{of: string, query: URLSearchParams}} given */
export function Rules({ of, query }) {
  const [toml, setToml] = useState(/** @type {string | null} */ (null));
  const [urls, setUrls] = useState(/** @type {string[]} */ ([]));
  const [url, setUrl] = useState(query.get("url") ?? "");
  const [tried, setTried] = useState(/** @type {any} */ (null));
  const [coverage, setCoverage] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const [copied, setCopied] = useState(false);
  const turn = useRef(0);
  // The rules of the run, if any, and some of its pages.
  useEffect(() => {
    const crawl = encodeURIComponent(of);
    Promise.all([ask(`/console/crawls/${crawl}`), ask(`/api/crawls/${crawl}/pages`, { query: { outcome: "fetched", limit: PAGES } })]).then(async ([{ settings }, { pages }]) => {
      const known = pages.map((/** @type {any} */ page) => page.url).sort();
      setUrls(known);
      // The first page is one that gave an item, or whose URL matches a rule.
      const found = settings.items?.length ? (await ask(`/api/crawls/${crawl}/items`, { query: { limit: 1 } })).items[0]?.url : null;
      setUrl((was) => was || found || known.find((/** @type {string} */ one) => settings.items?.some((/** @type {any} */ rule) => fits(rule, one))) || known[0] || "");
      setToml(settings.items?.length ? (await ask("/console/definition", { body: { document: { items: settings.items } } })).toml : FIRST);
    }, setTrouble);
  }, [of]);
  useEffect(() => {
    if (toml === null || !url) return undefined;
    const mine = ++turn.current;
    const timer = setTimeout(() => ask("/console/trial", { body: { crawl: of, toml, url } }).then(
      (found) => { if (mine === turn.current) { setTried(found); setTrouble(null); } },
      (found) => { if (mine === turn.current) setTrouble(found); },
    ), TYPED_MS);
    return () => clearTimeout(timer);
  }, [of, toml, url]);
  const type = (/** @type {any} */ event) => { setToml(event.target.value); setCoverage(null); setCopied(false); };
  const crumb = html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(of)}`}>${of}</a> / rules</p>`;
  if (toml === null) return html`${crumb}<${Heading} title="Try rules" /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  const problems = tried?.problems ?? [];
  const cover = () => ask("/console/trial", { body: { crawl: of, toml } }).then((found) => setCoverage(found.coverage));
  const copy = () => navigator.clipboard.writeText(toml).then(() => setCopied(true));
  return html`${crumb}<${Heading} title="Try rules"><span class="muted" role="status">${copied && "copied"}</span><div class="actions"><${Act} label="Copy as TOML" act=${copy} done=${setTrouble} /><${Act} kind="main" label="Run on 50 pages" disabled=${problems.length > 0} act=${cover} done=${setTrouble} /></div></${Heading}>
    <p class="muted">Rules run on stored pages only: no requests, no changes to the run.</p>
    <${Warning} trouble=${trouble} />
    <div class="pair halves">
      <div class="column"><form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}><label class="wide">Page <input value=${url} list="pages" onChange=${(/** @type {any} */ event) => setUrl(event.target.value.trim())} autocomplete="off" spellcheck=${false} /></label><datalist id="pages">${urls.map((one) => html`<option value=${one}></option>`)}</datalist></form>
        ${url && html`<${Stored} key=${url} url=${url} crawl=${of} />`}</div>
      <section class="panel" aria-labelledby="rules"><div class="heading"><h2 id="rules">Rules</h2></div>
        <textarea class="toml" rows="18" aria-labelledby="rules" value=${toml} onInput=${type} spellcheck=${false} autocomplete="off"></textarea>
        ${problems.length > 0 && html`<div role="status"><ul class="problems">${problems.map((/** @type {any} */ { path, text, line }) => html`<li>${line && html`<span class="muted">line ${line}</span> `}${path && html`<code>${path}</code>`} ${text}</li>`)}</ul></div>`}</section>
    </div>
    ${tried && !tried.page && !problems.length && html`<p class="warn" role="status">Add a table [[items]] to see items.</p>`}
    ${tried?.page && html`<${Found} page=${tried.page} />`}
    ${coverage && html`<${Covered} coverage=${coverage} />`}`;
}
