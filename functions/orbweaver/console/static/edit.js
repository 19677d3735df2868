// Edits a run: the settings that may change, a preview of the changes, and the change.
import { html, useState } from "/vendor/preact-htm.js";
import { ask, usePoll, Warning, Loading } from "/lib.js";
import { settingText, fieldText, numberIn, Act, Dialog, CHOICES, LABELS } from "/parts.js";

// Lists of tables, which a line cannot hold.
const TABLES = ["rules", "items", "render.rules"];

/** Read a field back as what it was written from. @param {string} text @param {any} was */
function valueOf(text, was) {
  if (Array.isArray(was)) return text.split("\n").map((line) => line.trim()).filter(Boolean);
  const plain = text.trim();
  return plain === "true" || plain === "false" ? plain === "true" : numberIn(plain);
}

/** @param {string} key @param {any} value */
const shown = (key, value) => CHOICES[key]?.[String(value)] ?? settingText(value);

/** @param {any} document @param {string} key @param {any} value */
function put(document, key, value) {
  const parts = key.split(".");
  const last = /** @type {string} */ (parts.pop());
  let at = document;
  for (const part of parts) at = at[part] ??= {};
  at[last] = value;
}

/** @param {{name: string, was: any, text: string, set: (text: string) => void}} given */
function Field({ name, was, text, set }) {
  const typed = (/** @type {any} */ event) => set(event.target.value);
  return html`<label><span>${LABELS[name]} <code class="muted">${name}</code></span>${
    Array.isArray(was) ? html`<textarea rows="3" value=${text} onInput=${typed} placeholder="one per line"></textarea>`
    : name in CHOICES ? html`<select value=${text} onChange=${typed}>${text in CHOICES[name] ? null : html`<option value=${text}>not set</option>`}${Object.entries(CHOICES[name]).map(([one, words]) => html`<option value=${one}>${words}</option>`)}</select>`
    : html`<input value=${text} onInput=${typed} placeholder=${fieldText(was) || "none"} autocomplete="off" spellcheck=${false} />`}</label>`;
}

/** @param {{crawl: string, close: () => void}} given */
export function Edit({ crawl, close }) {
  const path = `/api/crawls/${encodeURIComponent(crawl)}`;
  const { data, trouble: unread } = usePoll(() => ask(`/console/crawls/${encodeURIComponent(crawl)}`), [crawl], 0);
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  if (!data) return html`<${Dialog} title="Edit the run" close=${close}><${Warning} trouble=${unread} /><${Loading} /></${Dialog}>`;
  const settings = Object.entries(data.settings).filter(([key]) => !TABLES.includes(key));
  const changed = settings.filter(([key, was]) => key in typed && typed[key] !== fieldText(was) && (Array.isArray(was) || typed[key].trim()));
  const change = {};
  for (const [key, was] of changed) put(change, key, valueOf(typed[key], was));
  const done = (/** @type {any} */ found) => { setTrouble(found); if (found) setPreview(null); };
  const set = (/** @type {string} */ key) => (/** @type {string} */ text) => { setTyped({ ...typed, [key]: text }); setPreview(null); };
  const lines = settings.filter(([, was]) => !Array.isArray(was));
  const lists = settings.filter(([, was]) => Array.isArray(was));
  return html`<${Dialog} title="Edit the run" close=${close}>
    <p class="muted">Changes apply within seconds, to later requests and links only. To change rules and items, use <code>orbweaver edit --config FILE</code>.</p>
    <form class="fields" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <div class="row">${lines.map(([key, was]) => html`<${Field} key=${key} name=${key} was=${was} text=${typed[key] ?? fieldText(was)} set=${set(key)} />`)}</div>
      ${lists.map(([key, was]) => html`<${Field} key=${key} name=${key} was=${was} text=${typed[key] ?? fieldText(was)} set=${set(key)} />`)}
    </form>
    <div class="foot"><${Warning} trouble=${trouble} />
    ${preview && (preview.changes.length
      ? html`<div class="scroll"><table><caption class="hidden">Changes</caption><thead><tr><th scope="col">Setting</th><th scope="col">Now</th><th scope="col">After</th></tr></thead><tbody>${preview.changes.map((/** @type {any} */ one) => html`<tr><th scope="row">${LABELS[one.key]} <code class="muted">${one.key}</code></th><td class="setting">${shown(one.key, one.was)}</td><td class="setting"><strong>${shown(one.key, one.becomes)}</strong></td></tr>`)}</tbody></table></div>`
      : html`<p>No setting changes.</p>`)}
    <div class="actions">
      <${Act} label="Preview" disabled=${!changed.length} act=${() => ask(`${path}/preview`, { body: change }).then(setPreview)} done=${done} />
      <${Act} kind="main" label="Apply" disabled=${!preview?.changes.length} act=${() => ask(path, { method: "PATCH", body: change }).then(close)} done=${done} />
    </div></div>
  </${Dialog}>`;
}
