// The pages of two runs compared, and the texts of one page, word by word.
import { html } from "/vendor/preact-htm.js";
import { ask, usePoll, link, number, plural, moment, words, Heading, Warning, Loading } from "/lib.js";
import { Address } from "/parts.js";

const KINDS = ["new", "changed", "moved", "gone", "failed", "not_seen", "unchanged"];
const MEANS = { new: "not in the earlier run", changed: "the content differs", moved: "now redirects elsewhere", gone: "no longer exists", failed: "not readable this time", not_seen: "not requested this time", unchanged: "the content is the same" };
const TONES = { new: "good", changed: "", moved: "warn", gone: "bad", failed: "warn", not_seen: "muted", unchanged: "muted" };

/** @param {{pieces: [string, boolean][] | null, tag: string}} given */
const Side = ({ pieces, tag }) => html`<td class=${pieces ? "" : "void"}>${pieces?.map(([text, differs]) => (differs ? (tag === "del" ? html`<del>${text}</del>` : html`<ins>${text}</ins>`) : text))}</td>`;

/** @param {{before: string, after: string, url: string}} given */
function TextChanges({ before, after, url }) {
  const { data, trouble } = usePoll(() => ask("/console/text-changes", { query: { before, after, url } }), [before, after, url], 0);
  return html`<section class="panel" aria-labelledby="text"><div class="heading"><h2 id="text">Text of the page</h2><${Address} url=${url} crawl=${after} /></div>
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data?.why && html`<p class="muted">${data.why}</p>`}
    ${data?.diff?.same && html`<p>The main text is the same; the change is outside it.</p>`}
    ${data?.diff?.lines.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Text before and after"><table class="diff"><thead><tr><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>
      ${data.diff.lines.map((/** @type {any} */ line) => html`${line.skipped > 0 && html`<tr class="inner"><td colspan="2" class="muted">${plural(line.skipped, "identical line")}</td></tr>`}<tr><${Side} pieces=${line.before} tag="del" /><${Side} pieces=${line.after} tag="ins" /></tr>`)}</tbody></table></div>`}
    ${data?.diff && (data.diff.cut_before > 0 || data.diff.cut_after > 0) && html`<p class="muted">${plural(Math.max(data.diff.cut_before, data.diff.cut_after), "further line was", "further lines were")} not compared.</p>`}
  </section>`;
}

/** @param {{before: string, after: string}} given */
function Choice({ before, after }) {
  const { data } = usePoll(() => ask(`/console/crawls/${encodeURIComponent(after || before)}`), [after || before], 0);
  const runs = [...new Set([...(data?.runs ?? []), before, after])].filter(Boolean);
  const go = (/** @type {string} */ one, /** @type {string} */ other) => { location.hash = link("changes", { before: one, after: other }).slice(1); };
  return html`<div class="filters"><label>From <select value=${before} onChange=${(/** @type {any} */ event) => go(event.target.value, after)}>${runs.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
    <label>To <select value=${after} onChange=${(/** @type {any} */ event) => go(before, event.target.value)}>${runs.map((one) => html`<option value=${one}>${one}</option>`)}</select></label></div>`;
}

/** @param {{query: URLSearchParams}} given */
export function Changes({ query }) {
  const [before, after, kind, url, text] = ["before", "after", "kind", "url", "text"].map((name) => query.get(name) ?? "");
  const { data, trouble } = usePoll(async () => (before && after ? ask("/console/changes", { query: { before, after, kind, text } }) : null), [before, after, kind, text], 0);
  const search = (/** @type {any} */ event) => { location.hash = link("changes", { before, after, kind, text: event.target.value.trim() }).slice(1); };
  if (!before || !after) return html`<${Heading} title="Changes" /><div class="empty"><p>This screen compares two runs of the same name.</p><p class="muted">Open the later <a href="#/">run</a> and choose “changes since then”. Crawl a site a second time if there is only one run.</p></div>`;
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(after)}`}>${after}</a> / changes</p>
    <${Heading} title="Changes">${data && html`<span class="muted">from ${moment(data.before.started_ms)} to ${moment(data.after.started_ms)}</span>`}</${Heading}>
    <${Choice} before=${before} after=${after} />
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data && html`<dl class="figures">${KINDS.map((one) => html`<div><dt>${words(one)}</dt><dd class=${data.counts[one] ? /** @type {any} */ (TONES)[one] : "muted"}>${data.counts[one] ? html`<a href=${link("changes", { before, after, text, kind: kind === one ? "" : one })} aria-current=${kind === one ? "true" : null}>${number(data.counts[one])}</a>` : "0"}<div class="below">${/** @type {any} */ (MEANS)[one]}</div></dd></div>`)}</dl>
      <form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}><label class="wide">Search <input type="search" value=${text} onChange=${search} placeholder="part of a URL or title" /></label></form>
      ${data.cut && html`<p class="muted">The runs are too large to compare completely: some pages are missing here.</p>`}
      ${url && html`<${TextChanges} before=${before} after=${after} url=${url} />`}
      ${data.pages.length === 0 && html`<div class="empty"><p>${text || kind ? "No page matches." : "No page changed."}</p></div>`}
      ${data.pages.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Pages"><table><thead><tr><th scope="col">Page</th><th scope="col">Change</th><th scope="col">Title</th><th scope="col">Text</th></tr></thead><tbody>
      ${data.pages.map((/** @type {any} */ one) => html`<tr><th scope="row"><${Address} url=${one.url} crawl=${after} /></th><td class=${/** @type {any} */ (TONES)[one.difference]}>${words(one.difference)}${one.said && html`<div class="muted">${one.said}</div>`}</td>
        <td>${one.title_before !== one.title && one.title_before !== null && one.title !== null ? html`<del>${one.title_before}</del> <ins>${one.title}</ins>` : one.title ?? one.title_before}</td><td>${one.difference === "changed" && html`<a href=${link("changes", { before, after, kind, text, url: one.url })} aria-label=${`Compare the texts of ${one.url}`}>Compare</a>`}</td></tr>`)}</tbody></table></div>`}
      ${data.more > 0 && html`<p class="muted">${plural(data.more, "more page")} not listed. Use the search to find one.</p>`}`}`;
}
