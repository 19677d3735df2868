// One run: its progress, forecast and cost, and what a person can do about it.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { ask, usePoll, user, steers, link, number, percent, rate, dollars, duration, moment, words, plural, Heading, Warning, Said, State, Meter, Loading } from "/lib.js";
import { size, delayText, settingText, spanText, valueText, Act, Dialog, Address, CHOICES, LABELS } from "/parts.js";
import { Crossing } from "/chart.js";
import { Edit } from "/edit.js";

const OUTCOMES = ["fetched", "unchanged", "redirected", "skipped", "failed"];
const LIVE_MS = 2_000;
const SPOKEN_MS = 10_000;
const HOSTS_SHOWN = 20, SAMPLES_MAX = 600;

/** @param {{title: string, value: any, below?: any, tone?: string}} given */
const Figure = ({ title, value, below, tone = "" }) => html`<div><dt>${title}</dt><dd class=${tone}>${value}${below && html`<div class="below">${below}</div>`}</dd></div>`;

/** @param {any} shown */
function costOf(shown) {
  const counted = shown.spent_dollars ?? 0;
  const pages = shown.outcomes.fetched;
  return { value: dollars(counted), below: pages ? `${dollars((1e6 * counted) / pages)} per million pages` : shown.state === "finished" ? "no page" : "no page yet" };
}

/** @param {{shown: any}} given */
function Figures({ shown }) {
  const { outcomes } = shown;
  const cost = costOf(shown);
  // A run that does not work has no current rate.
  const works = shown.state === "running" || shown.state === "stopping";
  return html`<dl class="figures">
    <${Figure} title="Found" value=${number(shown.claimed)} below=${`${number(shown.claimed - shown.done)} left`} />
    <${Figure} title="Done" value=${number(shown.done)} below=${percent(shown.done, shown.claimed)} />
    <${Figure} title="Pages" value=${number(outcomes.fetched + outcomes.unchanged)} below=${size(shown.bytes)} />
    <${Figure} title="Failed" value=${number(outcomes.failed)} below=${percent(outcomes.failed, shown.done)} tone=${outcomes.failed ? "warn" : ""} />
    <${Figure} title=${works ? "URLs per second" : "Pages per second"} value=${rate(shown.pages_per_s)} below=${works ? `mean ${rate(shown.rate.mean)}, best ${rate(shown.rate.peak)}` : `${rate(shown.rate.mean)} URLs`} />
    <${Figure} title="Cost" value=${cost.value} below=${cost.below} />
    <${Figure} title="Running time" value=${duration(shown.elapsed_s)} below=${shown.items ? plural(shown.items, "item") : null} />
  </dl>`;
}

/** @param {{shown: any}} given */
function Spoken({ shown }) {
  const [said, setSaid] = useState("");
  const at = useRef(0), state = useRef("");
  useEffect(() => {
    // It says a change of state at once, numbers every few seconds.
    if (state.current === shown.state && Date.now() - at.current < SPOKEN_MS && shown.state !== "finished") return;
    at.current = Date.now();
    state.current = shown.state;
    setSaid(`${shown.state}: ${number(shown.done)} of ${number(shown.claimed)} done, ${number(shown.outcomes.failed)} failed. ${shown.left_text}`);
  }, [shown.at_ms, shown.state]);
  return html`<p class="hidden" aria-live="polite">${said}</p>`;
}

/** @param {{shown: any}} given */
function Outcomes({ shown }) {
  const known = OUTCOMES.filter((one) => shown.outcomes[one]);
  const total = shown.done;
  return html`<section class="panel" aria-labelledby="outcomes">
    <div class="heading"><h2 id="outcomes">Outcomes</h2></div>
    <div class="stack" aria-hidden="true">${known.map((one) => html`<span class=${one} style=${{ flexGrow: shown.outcomes[one] }}></span>`)}</div>
    ${known.length === 0 && html`<p class="muted">${shown.state === "finished" ? "No URL was requested." : "No URL is done yet."}</p>`}
    ${known.length > 0 && html`<div class="scroll"><table><thead><tr><th scope="col">Outcome, reason</th><th scope="col" class="n">URLs</th><th scope="col" class="n">Share</th></tr></thead><tbody>
      ${known.map((one) => {
        const reasons = Object.entries(shown.reasons[one]);
        const alone = reasons.length === 1;
        return html`<tr><th scope="row"><span class=${`swatch ${one}`} aria-hidden="true"></span><a href=${link(`data/${encodeURIComponent(shown.crawl)}`, { outcome: one })}>${one}</a>${alone && html` <span class="muted">${words(reasons[0][0])}</span>`}</th><td class="n">${number(shown.outcomes[one])}</td><td class="n muted">${percent(shown.outcomes[one], total)}</td></tr>
          ${!alone && reasons.map(([reason, count]) => html`<tr class="inner"><th scope="row">${words(reason)}</th><td class="n">${number(/** @type {any} */ (count))}</td><td class="n muted">${percent(/** @type {any} */ (count), total)}</td></tr>`)}`;
      })}</tbody></table></div>`}
  </section>`;
}

/** @param {{shown: any}} given */
function Hosts({ shown }) {
  const hosts = shown.hosts.slice(0, HOSTS_SHOWN);
  return html`<section class="panel" aria-labelledby="hosts">
    <div class="heading"><h2 id="hosts">Hosts</h2></div>
    <div class="scroll" tabindex="0" role="region" aria-label="Hosts"><table class="rows plain" role="table"><thead role="rowgroup"><tr role="row"><th scope="col">Host</th><th scope="col" class="n">Found</th><th scope="col" class="n">Done</th><th scope="col" class="n">Queued</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Delay</th><th scope="col">Next request</th></tr></thead>
    <tbody role="rowgroup">${hosts.map((/** @type {any} */ host) => html`<tr role="row"><th scope="row" role="rowheader"><a class="url" href=${link("host", { host: host.host })}>${host.host.replace("https://", "")}</a></th>
      <td role="cell" class="n" data-name="found">${number(host.claimed)}</td><td role="cell" class="n" data-name="done">${number(host.done)}</td><td role="cell" class="n" data-name="queued">${number(host.queued)}</td><td role="cell" class=${host.failed ? "n warn" : "n"} data-name="failed">${number(host.failed)}</td><td role="cell" class="n" data-name="delay">${delayText(host.delay_ms)}</td>
      <td role="cell" class="wide" data-name="next request">${shown.state === "finished" ? "none: the run has ended" : shown.state === "paused" ? "after resume" : host.standing !== "open" ? html`<span class="bad">${host.standing} for ${duration(host.wait_ms / 1000)}: ${host.why}</span>` : host.no_robots ? html`<span class="warn">no robots.txt: ${host.no_robots}</span>` : host.wait_ms >= 2000 ? `busy: next ${duration(host.wait_ms / 1000)} already scheduled` : "now"}</td></tr>`)}</tbody></table></div>
  </section>`;
}

/** @param {{shown: any}} given */
function LeftOut({ shown }) {
  const [report, setReport] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(null);
  const refused = Object.entries(shown.refused);
  if (!refused.length && !Object.keys(shown.incomplete).length && !shown.outcomes.skipped && !shown.needs_rendering) return null;
  return html`<section class="panel" aria-labelledby="left-out">
    <div class="heading"><h2 id="left-out">Left out</h2>${!report && html`<${Act} kind="quiet" label="Show explanations and examples" act=${() => ask(`/api/crawls/${encodeURIComponent(shown.crawl)}/report`).then(setReport)} done=${setTrouble} />`}</div>
    <${Warning} trouble=${trouble} />
    <div class="scroll"><table><thead><tr><th scope="col">Reason</th><th scope="col" class="n">Count</th></tr></thead><tbody>
    ${report
      ? report.skipped.map((/** @type {any} */ one) => html`<tr><th scope="row">${words(one.kind)}: ${words(one.reason)}<div class="muted">${one.means}</div>
          <ul class="samples">${one.samples.map((/** @type {string} */ url) => html`<li><${Address} url=${url} crawl=${shown.crawl} /></li>`)}</ul></th><td class="n">${number(one.count)}</td></tr>`)
      : [...refused.map(([reason, count]) => [`link refused: ${words(reason)}`, count]), ...Object.entries(shown.reasons.skipped ?? {}).map(([reason, count]) => [`URL skipped: ${words(reason)}`, count]), ...Object.entries(shown.incomplete).map(([part, count]) => [`part left out: ${words(part)}`, count]), ...(shown.needs_rendering ? [["page needs its scripts", shown.needs_rendering]] : [])].map(([text, count]) => html`<tr><th scope="row">${text}</th><td class="n">${number(/** @type {any} */ (count))}</td></tr>`)}
    </tbody></table></div>
  </section>`;
}

/** @param {{latest: any[], crawl: string}} given */
const Latest = ({ latest, crawl }) => html`<section class="panel" aria-labelledby="latest"><div class="heading"><h2 id="latest">Latest URLs</h2></div>
  <div class="scroll" tabindex="0" role="region" aria-label="Latest URLs"><table class="rows plain" role="table"><thead role="rowgroup"><tr role="row"><th scope="col">URL</th><th scope="col">Outcome</th><th scope="col" class="n">Status</th><th scope="col" class="n">Took</th><th scope="col" class="n">At</th></tr></thead>
  <tbody role="rowgroup">${latest.map((one) => html`<tr role="row" key=${one.url}><th scope="row" role="rowheader"><${Address} url=${one.url} crawl=${crawl} /></th><td role="cell" class=${one.outcome === "failed" ? "bad" : ""} title=${one.error}>${one.outcome}${one.reason !== "ok" && `: ${words(one.reason)}`}</td><td role="cell" class="n" data-name="status">${one.status ?? "–"}</td><td role="cell" class="n" data-name="took">${one.latency_ms === null ? "–" : spanText(one.latency_ms)}</td><td role="cell" class="n" data-name="at">${moment(one.fetched_at)}</td></tr>`)}</tbody></table></div></section>`;

/** @param {{data: any}} given */
function Settings({ data }) {
  const known = Object.entries(data.settings).filter(([, value]) => valueText(value) !== "none");
  const unset = Object.keys(data.settings).length - known.length;
  return html`<section class="panel" aria-labelledby="settings"><div class="heading"><h2 id="settings">Settings</h2></div>
    <dl class="settings"><dt title="seeds">Seeds</dt><dd>${data.references.map((/** @type {string} */ url) => html`<div><${Address} url=${url} crawl=${data.shown.crawl} /></div>`)}${data.references_more > 0 && html`<span class="muted">and ${number(data.references_more)} more</span>`}</dd>
    ${known.map(([key, value]) => html`<dt title=${key}>${LABELS[key] ?? key}</dt><dd>${Array.isArray(value) && typeof value[0] === "object" ? html`<details><summary>${value.map((one) => one.name ?? one.match ?? "…").join(", ")}</summary><code>${JSON.stringify(value, null, 1)}</code></details>` : CHOICES[key]?.[String(value)] ?? settingText(value)}</dd>`)}</dl>${unset > 0 && html`<p class="muted">${plural(unset, "setting is", "settings are")} not set.</p>`}</section>`;
}

/** @param {{shown: any, again: () => void}} given */
function Steering({ shown, again }) {
  const [open, setOpen] = useState("");
  const [trouble, setTrouble] = useState(null);
  const [begun, setBegun] = useState(/** @type {any} */ (null));
  const path = `/api/crawls/${encodeURIComponent(shown.crawl)}`;
  const done = (/** @type {any} */ found) => { setTrouble(found); setOpen(""); again(); };
  const post = (/** @type {string} */ deed) => () => ask(`${path}/${deed}`, { method: "POST" });
  const may = steers();
  const live = may && (shown.state === "running" || shown.state === "paused");
  return html`<div class="actions">
      ${live && (shown.state === "paused" ? html`<${Act} kind="main" label="Resume" act=${post("resume")} done=${done} />` : html`<${Act} label="Pause" act=${post("pause")} done=${done} />`)}
      ${live && html`<button type="button" onClick=${() => setOpen("edit")}>Edit…</button>`}
      ${live && html`<button type="button" class="danger" onClick=${() => setOpen("cancel")}>Cancel…</button>`}
      ${may && shown.state === "finished" && shown.outcomes.failed > 0 && html`<${Act} label="Retry failed URLs" act=${() => ask(`${path}/retry`, { method: "POST" }).then(setBegun)} done=${done} />`}
      <a class="button" href=${`#/data/${encodeURIComponent(shown.crawl)}`}>Pages</a>
      <a class="button" href=${`#/report/${encodeURIComponent(shown.crawl)}`}>Requests</a>
      <a class="button" href=${`#/map/${encodeURIComponent(shown.crawl)}`}>Map</a>
      <a class="button" href=${`#/audit/${encodeURIComponent(shown.crawl)}`}>Audit</a>
      ${!user() && html`<a class="button" href=${`#/rules/${encodeURIComponent(shown.crawl)}`}>Try rules</a>`}
    </div>
    ${begun && html`<div class="notice good" role="status">${begun.crawls.length ? begun.crawls.map((/** @type {any} */ crawl) => html`<p>Retry started: <a href=${`#/run/${crawl.id}`}>${crawl.id}</a></p>`) : "No failed URL can be retried."}</div>`}
    <${Warning} trouble=${trouble} />
    ${open === "edit" && html`<${Edit} crawl=${shown.crawl} close=${() => { setOpen(""); again(); }} />`}
    ${open === "cancel" && html`<${Dialog} title="Cancel this run?" close=${() => setOpen("")}>
      <p>${plural(shown.claimed - shown.done, "queued URL")} will not be requested. The next run of ${shown.name} can request them. Pages already fetched are kept.</p>
      <div class="actions"><${Act} kind="danger" label="Cancel the run" act=${post("cancel")} done=${done} /></div></${Dialog}>`}`;
}

/** Merge samples by their moment; of too many drop every second one. @param {any[]} known @param {any[]} more */
function together(known, more) {
  const all = new Map([...known, ...more].map((one) => [one[0], one]));
  const found = [...all.values()].sort((one, other) => one[0] - other[0]);
  return found.length > SAMPLES_MAX ? found.filter((_, place) => place % 2 === 0 || place === found.length - 1) : found;
}

/** @param {{of: string}} given */
export function Run({ of }) {
  const { data, trouble, atMs, again } = usePoll(() => ask(`/console/crawls/${encodeURIComponent(of)}`), [of], (found) => (found.shown.state === "finished" ? 0 : LIVE_MS));
  // A server that started anew has no samples, so the page keeps those it saw.
  const known = useRef(/** @type {any[]} */ ([]));
  if (!data) return html`<${Heading} title=${of} /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  const { shown } = data;
  known.current = together(known.current, data.samples);
  const live = shown.state === "running" || shown.state === "stopping";
  const place = data.runs.indexOf(shown.crawl);
  const before = data.runs[place + 1];
  return html`
    <p class="crumb"><a href="#/">Runs</a> / ${shown.name}${before && html` · <a href=${`#/run/${encodeURIComponent(before)}`}>previous run</a> · <a href=${link("changes", { before, after: shown.crawl })}>changes since then</a>`}</p>
    <${Heading} title=${shown.crawl}><${State} state=${shown.state} stop=${shown.stop} /><span class="muted">started ${moment(data.started_ms)}</span><${Steering} shown=${shown} again=${again} /></${Heading}>
    <${Warning} trouble=${trouble} atMs=${atMs} />
    ${data.notice && html`<div class="notice"><p><${Said} text=${data.notice} /></p></div>`}
    <${Spoken} shown=${shown} />
    <${Figures} shown=${shown} />
    ${shown.left_text && html`<p class="left"><strong>Time left:</strong> ${shown.left_text}</p>`}
    ${live && data.waiting.map((/** @type {string} */ one) => html`<p class="left">${one[0].toUpperCase() + one.slice(1)}</p>`)}
    <div class="pair"><${Crossing} samples=${known.current} past=${data.past.filter((/** @type {any} */ one) => one[0] < known.current[0][0])} startedMs=${data.started_ms} finishedMs=${data.finished_ms} most=${data.settings["limits.pages"] ?? Infinity} live=${live} /><${Outcomes} shown=${shown} /></div>
    ${shown.budgets.length > 0 && html`<section class="panel" aria-labelledby="budgets"><div class="heading"><h2 id="budgets">Limits</h2></div>
      <ul class="budgets">${shown.budgets.map((/** @type {any} */ one) => html`<li><span>${one.name}</span><${Meter} part=${one.used} whole=${one.limit} label=${`${one.name} used`} /><span>${amount(one, one.used)} of ${amount(one, one.limit)}</span></li>`)}</ul></section>`}
    ${data.latest?.length > 0 && html`<${Latest} latest=${data.latest} crawl=${shown.crawl} />`}
    <${Hosts} shown=${shown} />
    <div class="pair top"><${LeftOut} shown=${shown} /><${Settings} data=${data} /></div>`;
}

/** @param {{name: string}} budget @param {number} value */
function amount(budget, value) {
  if (budget.name === "bytes") return size(value);
  if (budget.name === "dollars") return dollars(value);
  return budget.name === "duration" ? duration(value) : number(value);
}
