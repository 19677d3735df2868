// Dead letters by cause, with hosts and an example; a person sends them back or deletes them.
import { html, useState } from "/vendor/preact-htm.js";
import { ask, usePoll, user, steers, number, plural, moment, words, Heading, Warning, Loading } from "/lib.js";
import { Act, Dialog, Address } from "/parts.js";

/** @param {any} done */
function told(done) {
  const stayed = Object.entries(done.skipped).map(([why, count]) => `${plural(/** @type {any} */ (count), "letter stays", "letters stay")}: ${why}`);
  return [`${plural(done.sent, "letter was", "letters were")} sent back to the queue.`, ...stayed].join(" ");
}

/** @param {{group: any, lookedMs: number, done: (text: string, trouble: any) => void}} given */
function Group({ group, lookedMs, done }) {
  const [asked, setAsked] = useState(false);
  const { sample } = group;
  const redrive = () => ask("/console/dead-letters/redrive", { body: { cause: group.cause } }).then((found) => done(told(found), null));
  const purge = () => ask("/console/dead-letters/purge", { body: { cause: group.cause, until_ms: lookedMs } }).then((found) => { setAsked(false); done(`${plural(found.purged, "letter was", "letters were")} deleted.`, null); });
  const failed = (/** @type {any} */ trouble) => trouble && done("", trouble);
  return html`<section class="panel" aria-label=${group.cause}>
    <div class="heading"><h2>${group.cause}</h2><span>${plural(group.count, "letter")}</span>
      ${!user() && html`<div class="actions"><${Act} label="Send back to queue" act=${redrive} done=${failed} disabled=${group.hopeless} /><button type="button" class="danger" onClick=${() => setAsked(true)}>Delete…</button></div>`}</div>
    <dl class="settings">
      <dt>since</dt><dd>${moment(group.oldest_ms)}${moment(group.newest_ms) !== moment(group.oldest_ms) && `, newest ${moment(group.newest_ms)}`}</dd>
      <dt>kinds</dt><dd>${Object.entries(group.kinds).map(([kind, count]) => `${number(/** @type {any} */ (count))} ${words(kind)}`).join(", ")}</dd>
      ${group.hosts.length > 0 && html`<dt>hosts</dt><dd>${group.hosts.map((/** @type {any} */ [host, count]) => html`<div><span class="url">${host}</span> <span class="muted">${number(count)}</span></div>`)}</dd>`}
      <dt>example</dt><dd>${sample.reason && html`<div>${sample.reason}</div>`}${sample.crawl && html`<div class="muted">in ${sample.crawl}</div>`}
        ${sample.urls.map((/** @type {string} */ url) => html`<div><${Address} url=${url} /></div>`)}${sample.urls_more > 0 && html`<div class="muted">and ${number(sample.urls_more)} more URLs</div>`}${sample.body && html`<code>${sample.body}</code>`}</dd>
    </dl>
    ${group.hopeless && html`<p class="muted">These messages cannot succeed, so they cannot be sent back.</p>`}
    ${asked && html`<${Dialog} title="Delete these letters?" close=${() => setAsked(false)}>
      <p>${plural(group.count, "dead letter")} with the cause “${group.cause}”. Their URLs will not be crawled, and the crawl may not end by itself. This cannot be undone.</p>
      <div class="actions"><${Act} kind="danger" label="Delete" act=${purge} done=${failed} /></div></${Dialog}>`}
  </section>`;
}

export function Letters() {
  return steers() ? html`<${Known} />` : html`<${Heading} title="Dead letters" /><div class="empty"><p>Only users in the group <code>steer</code> can read dead letters, because reading hides them from others for a while.</p></div>`;
}

function Known() {
  const { data, trouble, atMs, again } = usePoll(() => ask("/console/dead-letters"), [], 0);
  const [said, setSaid] = useState("");
  const [unable, setUnable] = useState(/** @type {any} */ (null));
  const done = (/** @type {string} */ text, /** @type {any} */ found) => { setSaid(text); setUnable(found); again(); };
  const all = () => ask("/console/dead-letters/redrive", { body: {} }).then((found) => done(told(found), null));
  return html`<${Heading} title="Dead letters"><span class="muted">${data && plural(data.letters, "letter")}${data?.cut && ", and more unread"}</span>
      <div class="actions"><button type="button" onClick=${again}>Refresh</button>${data?.letters > 0 && !user() && html`<${Act} label="Send all back to queue" act=${all} done=${(/** @type {any} */ found) => found && done("", found)} />`}</div></${Heading}>
    <${Warning} trouble=${trouble ?? unable} atMs=${atMs} />
    ${said && html`<div class="notice good" role="status"><p>${said}</p></div>`}
    ${!data && !trouble && html`<${Loading} />`}
    ${data && data.letters === 0 && html`<div class="empty"><p>There are no dead letters.</p><p class="muted">A message that workers repeatedly fail to process appears here, with the reason.</p></div>`}
    ${data?.letters > 0 && user() && html`<p class="muted">To send them back or delete them with AWS credentials, use <code>orbweaver dlq</code> or <code>orbweaver console --target aws</code>.</p>`}
    ${data?.groups.map((/** @type {any} */ group) => html`<${Group} key=${group.cause} group=${group} lookedMs=${data.looked_ms} done=${done} />`)}`;
}
