// The store or stack as a whole: queues, workers and their switch, dollars by day; and schedules.
import { html, useState } from "/vendor/preact-htm.js";
import { ask, usePoll, user, steers, number, plural, dollars, duration, moment, ZONE, Heading, Warning, Loading, Said } from "/lib.js";
import { Act, Dialog } from "/parts.js";

const EVERY_MS = 4_000, SCHEDULES_MS = 30_000;
const QUEUES = [["waiting", "Waiting"], ["in_work", "In progress"], ["delayed", "Delayed"], ["dead", "Dead letters"]];

/** @param {{queues: any}} given */
const Queues = ({ queues }) => html`<dl class="figures">${QUEUES.map(([key, title]) => html`<div><dt>${title}</dt>
  <dd class=${key === "dead" && queues[key] ? "warn" : ""}>${key === "dead" || !queues[key] ? "" : "about "}${plural(queues[key], "message")}${key === "dead" && queues[key] > 0 && steers() && html`<div class="below"><a href="#/letters">by cause</a></div>`}</dd></div>`)}</dl>`;

/** @param {{workers: Record<string, string>, again: () => void}} given */
function Workers({ workers, again }) {
  const [asked, setAsked] = useState(false);
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const states = Object.values(workers);
  const off = states.every((state) => state === "Disabled" || state === "Disabling");
  const settled = states.every((state) => state === "Enabled" || state === "Disabled");
  const done = (/** @type {any} */ found) => { setTrouble(found); setAsked(false); again(); };
  const post = (/** @type {boolean} */ on) => () => ask("/console/stack/workers", { body: { on } });
  return html`<section class="panel" aria-labelledby="workers"><div class="heading"><h2 id="workers">Workers</h2>
      <span role="status">${settled ? (off ? "off: nothing is requested" : "on") : "switching…"}</span>
      <div class="actions">${off ? html`<${Act} kind="main" label="Switch on" act=${post(true)} done=${done} />` : html`<button type="button" class="danger" onClick=${() => setAsked(true)}>Switch all off…</button>`}</div></div>
    <${Warning} trouble=${trouble} />
    <div class="scroll"><table><thead><tr><th scope="col">Queue</th><th scope="col">Workers</th></tr></thead><tbody>${Object.entries(workers).map(([queue, state]) => html`<tr><th scope="row">${queue}</th><td class=${state === "Enabled" ? "good" : "warn"}>${state.toLowerCase()}</td></tr>`)}</tbody></table></div>
    ${asked && html`<${Dialog} title="Switch all workers off?" close=${() => setAsked(false)}>
      <p>This stops all crawls. Requests in progress finish. Messages stay queued for four days.</p>
      <div class="actions"><${Act} kind="danger" label="Switch off" act=${post(false)} done=${done} /></div></${Dialog}>`}
  </section>`;
}

const STATES = { OK: ["good", "OK"], ALARM: ["bad", "raised"], INSUFFICIENT_DATA: ["muted", "no data"] };

/** @param {{alarms: any[] | null}} given */
const Alarms = ({ alarms }) => html`<section class="panel" aria-labelledby="alarms"><div class="heading"><h2 id="alarms">Alarms</h2>${alarms?.some((one) => one.state === "ALARM") && html`<span class="bad" role="status">${plural(alarms.filter((one) => one.state === "ALARM").length, "alarm is", "alarms are")} raised</span>`}</div>
  ${!alarms && html`<p class="muted">These credentials cannot read alarms. They need the right <code>cloudwatch:DescribeAlarms</code>.</p>`}
  ${alarms?.length === 0 && html`<p class="muted">The stack has no alarms.</p>`}
  ${alarms && alarms.length > 0 && html`<div class="scroll"><table><thead><tr><th scope="col">Alarm</th><th scope="col">State</th><th scope="col">Since</th></tr></thead><tbody>${alarms.map((one) => html`<tr><th scope="row" class="cell">${one.name}<div class="muted">${one.meaning}</div></th><td class=${/** @type {any} */ (STATES)[one.state]?.[0]}>${/** @type {any} */ (STATES)[one.state]?.[1] ?? one.state}</td><td>${one.since_ms === null ? "–" : moment(one.since_ms)}</td></tr>`)}</tbody></table></div>`}
</section>`;

/** @param {{spending: any}} given */
function Spending({ spending }) {
  const most = Math.max(...spending.days.map((/** @type {any} */ one) => one.usd), 0);
  return html`<section class="panel" aria-labelledby="spending"><div class="heading"><h2 id="spending">Dollars by day</h2><span class="muted">of the day a run started, at list prices</span></div>
    ${spending.days.length === 0 && html`<p class="muted">No runs yet. <a href="#/new">Start one</a>.</p>`}
    ${spending.days.length > 0 && html`<div class="scroll"><table><thead><tr><th scope="col">Day</th><th scope="col" class="n">Runs</th><th scope="col" class="n">Pages</th><th scope="col" class="n">Dollars</th><th scope="col"><span class="hidden">Share</span></th></tr></thead><tbody>
    ${spending.days.map((/** @type {any} */ one) => html`<tr><th scope="row"><a href=${`#/?day=${one.day}`}>${one.day}</a></th><td class="n">${number(one.runs)}</td><td class="n">${number(one.pages)}</td><td class="n">${dollars(one.usd)}</td><td><meter class="share" min="0" max=${most || 1} value=${one.usd} aria-label=${`dollars of ${one.day}`}></meter></td></tr>`)}</tbody></table></div>`}
    ${spending.runs_more > 0 && html`<p class="muted">${plural(spending.runs_more, "earlier run")} not counted.</p>`}
  </section>`;
}

export function Stack() {
  const { data, trouble, atMs, again } = usePoll(() => ask("/console/stack", { query: { zone: ZONE } }), [], EVERY_MS);
  if (!data) return html`<${Heading} title="Workers" /><${Warning} trouble=${trouble} />${!trouble && html`<${Loading} />`}`;
  return html`<${Heading} title="Workers"><span class="muted">${data.where}</span></${Heading}>
    <${Warning} trouble=${trouble} atMs=${atMs} />
    ${data.queues ? html`<${Queues} queues=${data.queues} />` : html`<p class="muted">These credentials cannot read the queues.</p>`}
    ${user() ? html`<section class="panel" aria-labelledby="workers"><h2 id="workers">Workers and alarms</h2><p>The hosted console does not show them. With AWS credentials, use <code>orbweaver workers status</code> or <code>orbweaver console --target aws</code>.</p></section>` : data.workers ? html`<${Workers} workers=${data.workers} again=${again} />` : html`<section class="panel" aria-labelledby="workers"><h2 id="workers">Workers</h2><p><${Said} text=${data.idle ?? "Workers of a store run on this machine. They end with the command that started them."} /></p></section>`}
    ${!user() && data.workers && html`<${Alarms} alarms=${data.alarms} />`}
    <${Spending} spending=${data.spending} />`;
}

/** @param {{schedule: any, atMs: number, done: (trouble: any) => void}} given */
function Schedule({ schedule, atMs, done }) {
  const [asked, setAsked] = useState(false);
  const remove = () => ask("/console/schedules/remove", { body: { name: schedule.name } });
  const pause = () => ask("/console/schedules/pause", { body: { name: schedule.name, paused: !schedule.paused } });
  const [first, ...later] = schedule.next_ms;
  return html`<tr role="row"><th scope="row" role="rowheader"><a href=${`#/?begins=${encodeURIComponent(schedule.name)}`}>${schedule.name}</a></th><td role="cell"><code>${schedule.when}</code>${schedule.when.startsWith("cron") && html` <span class="muted">${schedule.timezone}</span>`}${schedule.warning && html`<div class="warn">⚠ <${Said} text=${schedule.warning} /></div>`}</td>
    <td role="cell">${schedule.paused ? html`<span class="warn">paused</span>` : first ? html`${moment(first)} <span class="muted">in ${duration((first - atMs) / 1000)}</span>` : "no further run"}${later.length > 0 && html`<div class="muted">then ${later.map(moment).join(", ")}</div>`}</td>
    <td role="cell">${schedule.last ? html`<a href=${`#/run/${encodeURIComponent(schedule.last.id)}`}>${moment(schedule.last.started_ms)}</a><div class=${schedule.last.pages || schedule.last.state !== "finished" ? "muted" : "warn"}>${schedule.last.state}, ${plural(schedule.last.pages, "page")}</div>` : html`<span class="muted">none yet</span>`}</td>
    <td role="cell" class="n"><${Act} label=${schedule.paused ? "Resume" : "Pause"} said=${`${schedule.paused ? "Resume" : "Pause"} ${schedule.name}`} act=${pause} done=${done} /> <button type="button" class="danger" aria-label=${`Remove ${schedule.name}`} onClick=${() => setAsked(true)}>Remove…</button>
    ${asked && html`<${Dialog} title="Remove this schedule?" close=${() => setAsked(false)}><p>${schedule.name} will not start again. Runs in progress continue.</p>
      <div class="actions"><${Act} kind="danger" label="Remove" act=${remove} done=${(/** @type {any} */ trouble) => { setAsked(false); done(trouble); }} /></div></${Dialog}>`}</td></tr>`;
}

export function Schedules() {
  const { data, trouble, atMs, again } = usePoll(() => ask("/console/schedules"), [], SCHEDULES_MS);
  const [unable, setUnable] = useState(/** @type {any} */ (null));
  const done = (/** @type {any} */ found) => { setUnable(found); again(); };
  return html`<${Heading} title="Schedules"><div class="actions"><a class="button" href="#/new">New…</a></div></${Heading}>
    <${Warning} trouble=${trouble ?? unable} atMs=${atMs} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data?.schedules.length === 0 && html`<div class="empty"><p>No schedules.</p><p class="muted">To repeat a crawl, add a table <code>[schedule]</code> with <code>every = "1d"</code> to a <a href="#/new">new crawl</a>.</p></div>`}
    ${data?.schedules.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Schedules"><table class="cards" role="table"><thead><tr><th scope="col">Name</th><th scope="col">When</th><th scope="col">Next runs</th><th scope="col">Last run</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody role="rowgroup">${data.schedules.map((/** @type {any} */ one) => html`<${Schedule} key=${one.name} schedule=${one} atMs=${atMs} done=${done} />`)}</tbody></table></div>`}`;
}
