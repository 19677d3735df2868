// The audit of an exported run: its faults by check, and the comparison with an earlier run.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { ask, usePoll, link, number, plural, words, Heading, Warning, Loading, Said } from "/lib.js";
import { Address } from "/parts.js";

const LIVE_MS = 700;
const TONES = { error: "bad", warning: "warn", notice: "" };
const STATUSES = ["new", "remaining", "fixed", "uncompared", "unjudged"], ALWAYS = 3;
/** Statuses of a comparison. The last two are rare. @param {any} report */
const statusesOf = (report) => (report.since ? STATUSES.filter((one, place) => place < ALWAYS || report.statuses[one]) : []);
/** @type {Record<string, string>} */
const MEANS = { new: "not in the earlier run", remaining: "in both runs", fixed: "no longer there", uncompared: "the check could not run on the earlier run", unjudged: "this run could not judge the URL" };
const NO_LINKS = "This run stored no links, so the checks of links did not run. Crawl again with `--links --window 0s`, or set `records.links = true` in the definition.";
/** @param {string} text */
const sentence = (text) => text[0].toUpperCase() + text.slice(1);

/** @param {{finding: any, crawl: string, since: string | null}} given */
const Finding = ({ finding, crawl, since }) => html`<li>${since && html`<strong>${finding.status}</strong> `}<${Address} url=${finding.url} crawl=${crawl} />${finding.target && html` → <${Address} url=${finding.target} crawl=${crawl} />`}${finding.detail && html` <span class="muted">${finding.detail}</span>`}</li>`;

/** @param {{check: any, report: any}} given */
function Check({ check, report }) {
  const total = Object.values(check.counts).reduce((sum, one) => sum + one, 0);
  const shown = check.findings.length;
  return html`<tr role="row"><th scope="row" role="rowheader"><code>${check.check}</code> <span class=${/** @type {any} */ (TONES)[check.severity]}>${check.severity}</span><div>${check.sentence}</div><div class="muted">${check.fix}</div>
      <details><summary>${shown < total ? `${number(shown)} of ${plural(total, "finding")}` : plural(total, "finding")}<span class="hidden"> of ${check.check}</span></summary><ul class="samples">${check.findings.map((/** @type {any} */ one) => html`<${Finding} finding=${one} crawl=${report.crawl} since=${report.since} />`)}</ul></details></th>
    <td role="cell" class="n" data-name="faults">${number(check.faults)}</td>${statusesOf(report).map((one) => html`<td role="cell" class="n" data-name=${one}>${number(check.counts[one] ?? 0)}</td>`)}</tr>`;
}

/** @param {{report: any}} given */
function Found({ report }) {
  const found = report.checks.filter((/** @type {any} */ one) => Object.keys(one.counts).length);
  if (!found.length) return html`<div class="empty"><p>The checks found no fault.</p></div>`;
  const statuses = statusesOf(report);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Checks with findings"><table class="rows plain found" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Check, fault and fix</th><th scope="col" role="columnheader" class="n">Faults</th>${statuses.map((one) => html`<th scope="col" role="columnheader" class="n">${sentence(one)}</th>`)}</tr></thead>
    <tbody role="rowgroup">${found.map((/** @type {any} */ one) => html`<${Check} key=${one.check} check=${one} report=${report} />`)}</tbody></table></div>`;
}

/** @param {{report: any}} given */
const Unjudged = ({ report }) => report.unjudged.length > 0 && html`<section class="panel" aria-labelledby="unjudged"><div class="heading"><h2 id="unjudged">URLs that could not be judged</h2><span class="muted">These are no faults of the site.</span></div>
  <div class="scroll" tabindex="0" role="region" aria-label="URLs that could not be judged"><table class="rows plain" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Reason</th><th scope="col" role="columnheader" class="n">URLs</th><th scope="col" role="columnheader">Example</th></tr></thead><tbody role="rowgroup">
  ${report.unjudged.map((/** @type {any} */ one) => html`<tr role="row"><th scope="row" role="rowheader">${words(one.reason)}<div class="muted">${one.means}</div></th><td role="cell" class="n" data-name="URLs">${number(one.urls)}</td><td role="cell" class="wide url">${one.example && html`<${Address} url=${one.example} crawl=${report.crawl} />`}</td></tr>`)}</tbody></table></div></section>`;

/** @param {{checks: any[]}} given */
function Rest({ checks }) {
  const not = checks.filter((one) => one.not_run), clean = checks.filter((one) => !one.not_run && !Object.keys(one.counts).length);
  const reasons = [...new Set(not.map((one) => one.not_run))];
  return html`${not.length > 0 && html`<section class="panel" aria-labelledby="not-run"><h2 id="not-run">${plural(not.length, "check")} did not run</h2><dl class="settings">${reasons.map((why) => html`<dt><${Said} text=${sentence(why)} /></dt><dd>${not.filter((one) => one.not_run === why).map((one) => one.check).join(", ")}</dd>`)}</dl></section>`}
    ${clean.length > 0 && html`<details class="clean"><summary>${plural(clean.length, "check")} found nothing</summary><ul class="samples">${clean.map((one) => html`<li><code>${one.check}</code> ${one.sentence}</li>`)}</ul></details>`}`;
}

/** @param {{report: any}} given */
function Report({ report }) {
  const linked = report.checks.some((/** @type {any} */ one) => one.needs.includes("links") && !one.not_run);
  const urls = Object.values(report.outcomes).reduce((sum, one) => sum + one, 0);
  return html`${!linked && html`<div class="notice"><p><${Said} text=${NO_LINKS} /></p></div>`}
    <dl class="figures">${Object.entries(report.severities).map(([one, count]) => html`<div><dt>${sentence(one)}s</dt><dd class=${count ? /** @type {any} */ (TONES)[one] : "muted"}>${number(count)}</dd></div>`)}
      ${statusesOf(report).map((one) => html`<div><dt>${sentence(one)}</dt><dd>${number(report.statuses[one] ?? 0)}<div class="below">${MEANS[one]}</div></dd></div>`)}
      <div><dt>Readable pages</dt><dd>${number(report.pages)}<div class="below">of ${plural(urls, "URL")}</div></dd></div></dl>
    <${Found} report=${report} /><${Unjudged} report=${report} /><${Rest} checks=${report.checks} />
    <p class="muted"><${Said} text=${`All findings, and other formats: \`orbweaver audit ${report.crawl}${report.since ? ` --since ${report.since}` : ""} --format html --out audit.html\``} /></p>`;
}

/** @param {{data: any}} given */
const Progress = ({ data }) => html`<section class="panel" aria-labelledby="progress"><h2 id="progress">The audit runs</h2><progress max=${data.of || 1} value=${data.of ? data.done : null} aria-labelledby="progress"></progress>
  <p class="muted" role="status">${!data.of ? "Reads the tables" : data.done < data.of ? `${number(data.done)} of ${plural(data.of, "check")} done` : "Collects the findings"}</p></section>`;

/** @param {{of: string, query: URLSearchParams}} given */
export function Audit({ of, query }) {
  const since = query.get("since") ?? "";
  const { data, trouble, again } = usePoll(() => ask("/console/audit", { query: { crawl: of, since } }), [of, since], (found) => (found.state === "running" ? LIVE_MS : 0));
  // The choice stays while another comparison runs.
  const [runs, setRuns] = useState(/** @type {string[]} */ ([]));
  useEffect(() => { if (data?.report) setRuns(data.report.earlier_runs); }, [data]);
  const choose = (/** @type {any} */ event) => { location.hash = link(`audit/${encodeURIComponent(of)}`, { since: event.target.value }).slice(1); };
  const choices = [...new Set([...runs, since])].filter(Boolean);
  return html`<p class="crumb"><a href="#/">Runs</a> / <a href=${`#/run/${encodeURIComponent(of)}`}>${of}</a> / audit</p>
    <${Heading} title="Audit" />
    ${(choices.length > 0 || data?.report) && html`<div class="filters"><label>Since run <select value=${since} onChange=${choose}><option value="">no comparison</option>${choices.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>${!choices.length && html`<span>No earlier run of this name is exported.</span>`}</div>`}
    <${Warning} trouble=${trouble} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data?.state === "running" && html`<${Progress} data=${data} />`}
    ${data?.state === "absent" && html`<div class="empty"><p>This run is not exported, so there is nothing to audit.</p><p class="muted"><${Said} text=${sentence(data.why)} /></p></div>`}
    ${data?.state === "failed" && html`<div class="notice bad" role="alert"><p>The audit could not run.</p><p><${Said} text=${sentence(data.why.split("\n")[0])} /></p><div class="actions"><button type="button" onClick=${again}>Try again</button></div></div>`}
    ${data?.report && html`<${Report} report=${data.report} />`}`;
}
