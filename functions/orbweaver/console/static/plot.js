// A chart of the rows of a query: bars by a text, a line by a number or a time.
import { html, useState } from "/vendor/preact-htm.js";
import { number, plural } from "/lib.js";
import { steps, useWidth } from "/chart.js";

const BARS = 30, BAR = 22, HIGH = 260, LEFT = 62, RIGHT = 16, TOP = 10, BOTTOM = 26;
const MOMENT = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)/;
const SHORT = 28, LABEL = 6.4;

/** @param {string | null} text @param {number} most */
const short = (text, most) => (text === null ? "none" : text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @param {number} value */
const written = (value) => (Number.isInteger(value) ? number(value) : String(Number(value.toPrecision(4))));

/** Say where on an axis a cell lies, if it does. @param {string | null} cell @param {boolean} isNumber */
function placed(cell, isNumber) {
  if (cell === null) return NaN;
  return isNumber ? Number(cell) : MOMENT.test(cell) ? Date.parse(/[zZ]|^\d{4}-\d\d-\d\d$/.test(cell) ? cell : `${cell}Z`) : NaN;
}

/** Bars, the longest text first cut. @param {{points: [string | null, number][], wide: number, says: string}} given */
function Bars({ points, wide, says }) {
  const texts = points.map(([text]) => short(text, Math.min(SHORT, Math.floor((wide * 0.45 - 14) / LABEL))));
  const left = 14 + LABEL * Math.max(...texts.map((text) => text.length));
  const low = Math.min(0, ...points.map(([, value]) => value)), most = Math.max(0, ...points.map(([, value]) => value));
  const x = (/** @type {number} */ value) => left + ((value - low) / (most - low || 1)) * (wide - left - 70);
  return html`<svg class="chart" viewBox=${`0 0 ${wide} ${points.length * BAR + 4}`} width=${wide} height=${points.length * BAR + 4} role="img" aria-label=${says}>
    ${points.map(([, value], place) => html`<text x=${left - 8} y=${place * BAR + 15} text-anchor="end">${texts[place]}</text>
      <rect class="bar" x=${Math.min(x(0), x(value))} y=${place * BAR + 4} width=${Math.max(1, Math.abs(x(value) - x(0)))} height=${BAR - 7} rx="2" />
      <text x=${x(Math.max(0, value)) + 6} y=${place * BAR + 15}>${written(value)}</text>`)}</svg>`;
}

/** A line over numbers or moments. @param {{points: [number, number][], moments: boolean, wide: number, says: string}} given */
function Line({ points, moments, wide, says }) {
  const xs = points.map(([at]) => at), ys = points.map(([, value]) => value);
  const first = Math.min(...xs), last = Math.max(...xs);
  const low = Math.min(0, ...ys), most = Math.max(...ys, low + 1e-9);
  const x = (/** @type {number} */ at) => LEFT + ((at - first) / (last - first || 1)) * (wide - LEFT - RIGHT);
  const y = (/** @type {number} */ value) => HIGH - BOTTOM - ((value - low) / (most - low)) * (HIGH - TOP - BOTTOM);
  const at = (/** @type {number} */ value) => (moments ? new Date(value).toISOString().slice(0, last - first < 2 * 86_400_000 ? 16 : 10).replace("T", " ") : written(value));
  return html`<svg class="chart" viewBox=${`0 0 ${wide} ${HIGH}`} width=${wide} height=${HIGH} role="img" aria-label=${says}>
    ${(low < 0 ? [low, 0, most] : steps(most, 4)).map((mark) => html`<line class="grid" x1=${LEFT} x2=${wide - RIGHT} y1=${y(mark)} y2=${y(mark)} /><text x=${LEFT - 8} y=${y(mark) + 4} text-anchor="end">${written(mark)}</text>`)}
    <text x=${LEFT} y=${HIGH - 8}>${at(first)}</text>${last > first && html`<text x=${wide - RIGHT} y=${HIGH - 8} text-anchor="end">${at(last)}</text>`}
    <path class="found" d=${points.map(([at, value], place) => `${place ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("")} />
    ${points.length <= 60 && points.map(([at, value]) => html`<circle class="dot" cx=${x(at)} cy=${y(value)} r="2.5" />`)}
    <line class="axis" x1=${LEFT} x2=${wide - RIGHT} y1=${HIGH - BOTTOM} y2=${HIGH - BOTTOM} /></svg>`;
}

/** A chart of rows, if they have a column of numbers. @param {{found: any}} given */
export function Plot({ found }) {
  const { columns, rows } = found;
  const numbers = columns.flatMap((/** @type {any} */ column, /** @type {number} */ place) => (column.number && rows.some((/** @type {any[]} */ row) => row[place] !== null) ? [place] : []));
  const words = columns.findIndex((/** @type {any} */ column) => !column.number);
  const [along, setAlong] = useState(words === -1 ? 0 : words);
  const [what, setWhat] = useState(numbers.find((/** @type {number} */ place) => place !== along) ?? -1);
  const [box, wide] = useWidth();
  if (what === -1 || rows.length < 2) return null;
  const kept = rows.filter((/** @type {any[]} */ row) => row[what] !== null && Number.isFinite(Number(row[what])));
  /** @type {[string | null, number][]} */
  const cells = kept.map((/** @type {any[]} */ row) => [row[along], Number(row[what])]);
  const texts = [along, ...columns.flatMap((/** @type {any} */ column, /** @type {number} */ place) => (column.number || place === along ? [] : [place]))];
  const places = cells.map(([cell]) => placed(cell, columns[along].number));
  const isLine = cells.length > 1 && places.every(Number.isFinite);
  // Labels use more columns if one does not distinguish the rows.
  const named = new Set(cells.map(([cell]) => cell)).size === cells.length ? cells : cells.map(([, value], /** @type {number} */ place) => /** @type {[string, number]} */ ([texts.map((/** @type {number} */ column) => kept[place][column] ?? "none").join(", "), value]));
  const points = isLine ? cells.map(([, value], /** @type {number} */ place) => /** @type {[number, number]} */ ([places[place], value])).sort((a, b) => a[0] - b[0]) : named.slice(0, BARS);
  const name = (/** @type {number} */ place) => columns[place].name;
  const says = `${name(what)} by ${name(along)}: ${isLine ? plural(points.length, "point") : plural(points.length, "bar")}`;
  const choice = (/** @type {string} */ title, /** @type {number} */ value, /** @type {(place: number) => void} */ set, /** @type {number[]} */ among) => html`<label>${title} <select value=${value} onChange=${(/** @type {any} */ event) => set(Number(event.target.value))}>${among.map((place) => html`<option value=${place}>${name(place)}</option>`)}</select></label>`;
  const left = rows.length - points.length;
  return html`<figure class="panel" ref=${box}><div class="heading"><h2>Chart</h2><div class="filters">${choice("Of", what, setWhat, numbers)}${choice("by", along, setAlong, columns.map((/** @type {any} */ _, /** @type {number} */ place) => place))}</div></div>
    ${points.length > 0 && (isLine ? html`<${Line} points=${points} moments=${!columns[along].number} wide=${wide} says=${says} />` : html`<${Bars} points=${points} wide=${wide} says=${says} />`)}
    ${left > 0 && html`<p class="muted">${plural(left, "row")} of ${number(rows.length)} not drawn.</p>`}</figure>`;
}
