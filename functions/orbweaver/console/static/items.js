// Item rules in the form of a new crawl: which fields to extract from which pages.
import { html, useState, useEffect, useRef } from "/vendor/preact-htm.js";
import { plural } from "/lib.js";

/** Read fields of a rule, one a line as `title: h1`; the value is CSS, or JSON for other keys. @param {string} text */
function fieldsIn(text) {
  const found = text.split("\n").map((line) => /^\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(line)).filter((one) => one !== null);
  return Object.fromEntries(found.map(([, name, value]) => {
    try { return [name, value.startsWith("{") ? JSON.parse(value) : value]; } catch { return [name, value]; }
  }));
}
const fieldsText = (/** @type {any} */ fields) => Object.entries(fields ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");

/** The first item rule; the TOML has all of them. @param {{rules: any[], problems: any[], change: (rules: any) => void}} given */
export function Items({ rules, problems, change }) {
  const rule = rules[0] ?? {};
  const known = fieldsText(rule.fields);
  const [text, setText] = useState(known);
  const busy = useRef(false);
  useEffect(() => { if (!busy.current) setText(known); }, [known]);
  const set = (/** @type {any} */ part) => {
    const next = { ...rule, ...part };
    const empty = !next.name && !next.match && !Object.keys(next.fields ?? {}).length;
    const all = empty ? rules.slice(1) : [next, ...rules.slice(1)];
    change(all.length ? all : undefined);
  };
  const line = (/** @type {string} */ key, /** @type {string} */ label, /** @type {string} */ hint) => html`<label><span>${label} <code class="muted">items.${key}</code></span><input value=${rule[key] ?? ""} onInput=${(/** @type {any} */ event) => set({ [key]: event.target.value || undefined })} placeholder=${hint} autocomplete="off" spellcheck=${false} /></label>`;
  return html`<div class="row">${line("name", "Item rule", "products")}${line("match", "Extract from URLs matching", "/product/")}
    <label class="long"><span>Fields <code class="muted">items.fields</code></span><textarea rows="3" value=${text} placeholder=${"title: h1\nprice: .price"} spellcheck=${false} onFocus=${() => { busy.current = true; }} onBlur=${() => { busy.current = false; setText(known); }}
      onInput=${(/** @type {any} */ event) => { setText(event.target.value); set({ fields: fieldsIn(event.target.value) }); }}></textarea>
      ${problems.length > 0 && html`<span class="bad">${problems.map(({ text: why }) => html`<span class="line-of">${why}</span>`)}</span>`}</label>
    ${rules.length > 1 && html`<p class="muted">${plural(rules.length - 1, "more item rule")}: edit crawl.toml to change them.</p>`}</div>`;
}
