// The requests of a run by kind of URL: the yield of each kind, and patterns that exclude it.
import { html, useState } from "/vendor/preact-htm.js";
import { ask, usePoll, number, plural, percent, dollars, Heading, Warning, Meter, Loading } from "/lib.js";
import { Act } from "/parts.js";

const SHOWN = 50;

/** @param {{kind: any, all: number}} given */
function Kind({ kind, all }) {
  return html`<tr><th scope="row"><code class="url">${kind.kind}</code><div class="muted url">${kind.example}</div>${kind.brought_little && html`<div class="odd">low yield</div>`}</th>
    <td class="n"><${Meter} part=${kind.requests} whole=${all} label="share of all requests" /> ${number(kind.requests)}</td>
    <td class=${kind.noindex ? "n warn" : "n muted"}>${number(kind.noindex)}</td><td class=${kind.outcomes.failed ? "n bad" : "n muted"}>${number(kind.outcomes.failed ?? 0)}</td>
    <td class="n">${number(kind.titles)}</td><td class="n">${number(kind.bodies)}</td><td class="n">${kind.texts_read ? `${number(kind.texts)} of ${number(kind.texts_read)}` : "–"}</td><td class="n">${number(kind.led_to)}</td><td class="n">${dollars(kind.usd)}</td></tr>`;
}

/** @param {{asked: any}} given */
function Suggested({ asked }) {
  const [copied, setCopied] = useState("");
  const kinds = new Map(asked.kinds.map((/** @type {any} */ one) => [one.exclude, one]));
  const copy = () => navigator.clipboard.writeText(asked.suggested.map((/** @type {string} */ one) => `  '${one}',`).join("\n")).then(() => setCopied("copied"));
  if (!asked.suggested.length) return html`<p class="muted">No kind of URL has a yield so low that excluding it would pay off.</p>`;
  return html`<section class="panel" aria-labelledby="suggested"><div class="heading"><h2 id="suggested">Kinds with a low yield</h2><span class="muted" role="status">${copied}</span><${Act} label="Copy for scope.exclude" act=${copy} /></div>
    <p>Excluding them saves ${plural(asked.saves_requests, "request")} and ${dollars(asked.saves_usd)}. Pages that only these URLs link to are then not found.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Patterns"><table><thead><tr><th scope="col">Pattern</th><th scope="col" class="n">Requests</th><th scope="col" class="n">Dollars</th></tr></thead><tbody>
      ${asked.suggested.map((/** @type {string} */ one) => html`<tr><th scope="row"><code class="url">${one}</code></th><td class="n">${number(kinds.get(one)?.saves_requests)}</td><td class="n">${dollars(kinds.get(one)?.saves_usd ?? 0)}</td></tr>`)}</tbody></table></div></section>`;
}

/** @param {{spared: any, run: any}} given */
function Waiting({ spared, run }) {
  if (!spared.links) return null;
  const ended = run.state === "finished";
  return html`<section class="panel" aria-labelledby="waiting"><h2 id="waiting">${ended ? "Links not requested" : "Links that wait"}</h2>
    <p>${plural(spared.links, "link")} of kinds with a low yield, or beyond the page limit${spared.read < spared.links ? `; the table shows the first ${number(spared.read)}` : ""}. ${ended ? `A later run of ${run.name} with a higher page limit` : "A higher page limit"} continues with the best of them.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Links by kind of URL"><table><thead><tr><th scope="col">Kind, and an example</th><th scope="col" class="n">Links</th></tr></thead><tbody>
      ${spared.kinds.map((/** @type {any} */ one) => html`<tr key=${one.kind}><th scope="row"><code class="url">${one.kind}</code><div class="muted url">${one.example}</div></th><td class="n">${number(one.links)}</td></tr>`)}</tbody></table></div></section>`;
}

/** @param {{of: string}} given */
export function Report({ of }) {
  const [all, setAll] = useState(false);
  const { data, trouble, atMs } = usePoll(() => ask(`/api/crawls/${encodeURIComponent(of)}/report`), [of], 0);
  const crumb = html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(of)}`}>${of}</a> / requests</p>`;
  if (!data) return html`${crumb}<${Heading} title="Where the requests went" /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  const asked = data.requests;
  const kinds = asked.kinds.filter((/** @type {any} */ one) => one.requests);
  const shown = all ? kinds : kinds.slice(0, SHOWN);
  return html`${crumb}<${Heading} title="Where the requests went" />
    <${Warning} trouble=${trouble} atMs=${atMs} />
    ${!asked.requests && html`<div class="empty"><p>No request yet.</p><p class="muted">This screen fills while the run works.</p></div>`}
    ${asked.requests > 0 && html`<dl class="figures">
      <div><dt>Requests</dt><dd>${number(asked.requests)}<div class="below">${plural(asked.records, "record")}${asked.unread ? ", and more unread" : ""}</div></dd></div>
      <div><dt>Kinds of URL</dt><dd>${number(kinds.length)}<div class="below">${asked.other_requests ? `and ${plural(asked.other_requests, "request")} of other kinds` : "fixed words shown; * is the variable part"}</div></dd></div>
      <div><dt>Low yield</dt><dd class=${asked.saves_requests ? "warn" : ""}>${number(asked.saves_requests)}<div class="below">${percent(asked.saves_requests, asked.requests)} of requests</div></dd></div>
      <div><dt>Cost</dt><dd>${dollars(asked.usd)}<div class="below">estimate, on AWS</div></dd></div></dl>
      <${Suggested} asked=${asked} />
      <div class="scroll" tabindex="0" role="region" aria-label="Requests by kind of URL"><table class="kinds"><caption class="hidden">Requests by kind of URL, most requests first</caption><thead><tr><th scope="col">Kind, and an example</th><th scope="col" class="n">Requests</th><th scope="col" class="n">noindex</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Titles</th><th scope="col" class="n">Bodies</th><th scope="col" class="n">Texts</th><th scope="col" class="n">Discovered</th><th scope="col" class="n">Dollars</th></tr></thead>
      <tbody>${shown.map((/** @type {any} */ one) => html`<${Kind} key=${one.kind} kind=${one} all=${asked.requests} />`)}</tbody></table></div>
      ${shown.length < kinds.length && html`<p><button type="button" class="quiet" onClick=${() => setAll(true)}>Show all ${number(kinds.length)} kinds</button></p>`}
      <p class="muted">Titles, bodies and texts: the number of different ones. Texts are compared on a sample of pages, if texts or bodies are stored. Discovered: indexable pages that this kind linked first. In a kind, <code>0</code> is any number, and <code>**</code> is any number of folders.</p>
      <${Waiting} spared=${data.spared} run=${data.crawl} />`}`;
}
