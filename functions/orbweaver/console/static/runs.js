// All runs: unfinished ones first, earlier runs of a name folded under the newest.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { ask, usePoll, link, number, percent, plural, rate, duration, dollars, moment, ZONE, Heading, Warning, State, Meter, Loading } from "/lib.js";

const STATES = ["running", "paused", "stopping", "finished"];
const LIVE_MS = 2_000;
// The list is read less often: on AWS that scans a whole table, which costs money.
const LIST_MS = 5_000;
const LIST_BILLED_MS = 60_000;
// From how much less on a run is marked.
const LESS_PERCENT = 20;

/** @param {any} progress */
const pagesOf = (progress) => progress.outcomes.fetched + progress.outcomes.unchanged;

/** @param {any} row */
function oddity(row) {
  const { progress } = row;
  if (progress.crawl.state !== "finished") return "";
  if (row.less_percent >= LESS_PERCENT) return `${row.less_percent} % fewer pages than the previous run`;
  if (progress.claimed && !pagesOf(progress)) return "no page fetched";
  return "";
}

/** @param {{row: any, live: any, inner?: boolean, open?: boolean, toggle?: () => void}} given */
function Row({ row, live, inner = false, open = false, toggle }) {
  // What is read more often is newer.
  const progress = live ? { ...row.progress, ...live, spent_usd: live.spent_dollars ?? 0, crawl: { ...row.progress.crawl, state: live.state, stop: live.stop } } : row.progress;
  const { crawl } = progress;
  const odd = oddity(row);
  const failed = progress.outcomes.failed;
  const more = row.runs - 1;
  return html`<tr role="row" class=${inner ? "inner" : ""}>
    <th scope="row" role="rowheader"><a href=${`#/run/${encodeURIComponent(crawl.id)}`}>${inner ? crawl.id : crawl.name}</a>
      ${!inner && more > 0 && html` <button type="button" class="fold" aria-expanded=${open} onClick=${toggle}>${open ? "▾" : "▸"} ${plural(more, "more run")}</button>`}
      ${odd && html`<div class="odd">⚠ ${odd}</div>`}</th>
    <td role="cell"><${State} state=${crawl.state} stop=${crawl.stop} /></td>
    <td role="cell" class="n" data-name="pages">${number(pagesOf(progress))}</td>
    <td role="cell" class="n" data-name="done"><${Meter} part=${progress.done} whole=${progress.claimed} label="done of found" /> ${number(progress.done)} / ${number(progress.claimed)}</td>
    <td role="cell" class="n" data-name="pages/s">${rate(progress.pages_per_s)}</td>
    <td role="cell" class=${failed ? "n warn" : "n"} data-name="failed">${number(failed)} <span class="muted">${percent(failed, progress.done)}</span></td>
    <td role="cell" class="n" data-name="cost">${dollars(progress.spent_usd)}</td>
    <td role="cell">${crawl.state === "finished"
      ? html`<span class="muted">ended ${moment(crawl.finished_at)}, took ${duration(progress.elapsed_s)}</span>`
      : live?.left_text || html`<span class="muted">started ${moment(crawl.started_at)}</span>`}</td>
  </tr>`;
}

/** The runs of a name behind its first. @param {{name: string, but: string, live: any}} given */
function Folded({ name, but, live }) {
  const [pages, setPages] = useState(/** @type {any[]} */ ([]));
  const [trouble, setTrouble] = useState(null);
  const more = (/** @type {string | null} */ cursor) =>
    ask("/api/overview", { query: { name, limit: 20, cursor } }).then((page) => setPages((was) => [...was, page]), setTrouble);
  useEffect(() => { more(null); }, [name]);
  const next = pages.at(-1)?.next;
  const rows = pages.flatMap((page) => page.crawls).filter((row) => row.progress.crawl.id !== but);
  return html`
    ${rows.map((row) => html`<${Row} key=${row.progress.crawl.id} row=${row} live=${live[row.progress.crawl.id]} inner=${true} />`)}
    ${trouble && html`<tr class="inner"><td colspan="8"><${Warning} trouble=${trouble} /></td></tr>`}
    ${next && html`<tr class="inner"><td colspan="8"><button type="button" class="quiet" onClick=${() => more(next)}>Earlier runs of ${name}</button></td></tr>`}`;
}

/** @param {{query: URLSearchParams}} given */
export function Runs({ query }) {
  const filter = { begins: query.get("begins"), state: query.get("state"), day: query.get("day") };
  const about = [filter.begins, filter.state, filter.day];
  const [later, setLater] = useState(/** @type {any[]} */ ([]));
  const [open, setOpen] = useState(/** @type {Record<string, boolean>} */ ({}));
  const billed = useRef(false);
  useEffect(() => setLater([]), about);
  const asked = { ...filter, zone: filter.day && ZONE, limit: 50 };
  const load = () => ask("/api/overview", { query: asked });
  const { data, trouble, atMs } = usePoll(load, about, () => (billed.current ? LIST_BILLED_MS : LIST_MS));
  const going = (data?.crawls ?? []).map((/** @type {any} */ row) => row.progress.crawl).filter((/** @type {any} */ crawl) => crawl.state !== "finished");
  const ids = going.map((/** @type {any} */ crawl) => `id=${encodeURIComponent(crawl.id)}`).join("&");
  const { data: lately } = usePoll(async () => {
    const found = ids ? await ask(`/console/live?${ids}`) : null;
    billed.current = found?.billed ?? billed.current;
    return found;
  }, [ids], ids ? LIVE_MS : 0);
  const live = lately?.crawls ?? {};
  const rows = data ? [...data.crawls, ...later.flatMap((page) => page.crawls)] : [];
  // A run that has moved from a later page to the first is shown once.
  const names = new Set();
  const shown = rows.filter(({ progress: { crawl } }) => !names.has(crawl.name) && names.add(crawl.name));
  const next = later.length ? later.at(-1).next : data?.next;
  const choose = (/** @type {string} */ key, /** @type {string} */ value) => { location.hash = link("", { ...filter, [key]: value }).slice(1); };
  return html`<${Heading} title="Runs" />
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()} role="search">
      <label>Name starts with <input type="search" value=${filter.begins ?? ""} onChange=${(/** @type {any} */ event) => choose("begins", event.target.value.trim())} /></label>
      <label>State <select value=${filter.state ?? ""} onChange=${(/** @type {any} */ event) => choose("state", event.target.value)}>
        <option value="">any</option>${STATES.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <label>Started on <input type="date" value=${filter.day ?? ""} onChange=${(/** @type {any} */ event) => choose("day", event.target.value)} /></label>
      <span class="muted" role="status">${data && plural(data.total, "crawl")}</span>
    </form>
    <${Warning} trouble=${trouble} atMs=${atMs} />
    ${!data && !trouble && html`<${Loading} />`}
    ${data && !shown.length && html`<div class="empty"><p>${about.some(Boolean) ? "No run matches these filters." : "No crawls yet."}</p>
      ${about.some(Boolean) ? html`<p><a href="#/">Clear the filters</a></p>` : html`<p class="muted">Start one here with <a href="#/new">New crawl</a>, or in a shell: <code>orbweaver crawl https://example.com/ --max-pages 100</code></p>`}</div>`}
    ${shown.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table class="runs" role="table">
      <caption class="hidden">Runs, unfinished ones first</caption>
      <thead><tr><th scope="col">Crawl</th><th scope="col">State</th><th scope="col" class="n">Pages</th><th scope="col" class="n">Done / found</th><th scope="col" class="n">Pages/s</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Cost</th><th scope="col">Time</th></tr></thead>
      <tbody role="rowgroup">${shown.map((row) => {
        const { id, name } = row.progress.crawl;
        return html`<${Row} key=${name} row=${row} live=${live[id]} open=${open[name]} toggle=${() => setOpen({ ...open, [name]: !open[name] })} />
          ${open[name] && html`<${Folded} name=${name} but=${id} live=${live} />`}`;
      })}</tbody></table></div>`}
    ${next && html`<p><button type="button" class="quiet" onClick=${() => ask("/api/overview", { query: { ...asked, cursor: next } }).then((page) => setLater([...later, page]))}>Show more (${number(data?.total ?? 0)} in total)</button></p>`}`;
}
