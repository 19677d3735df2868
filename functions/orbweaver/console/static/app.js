// The console: which screen is shown, and the frame around it.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { render } from "/vendor/preact-htm.js";
import { ask, user, steers, token, KEY, SESSION, PRINTED, Loading, Said } from "/lib.js";
import { Runs } from "/runs.js";

/** The screens after the first, each in a file that is loaded when the screen opens. */
const SCREENS = {
  new: () => import("/new.js").then((file) => file.New),
  run: () => import("/run.js").then((file) => file.Run),
  explain: () => import("/explain.js").then((file) => file.Explain),
  host: () => import("/host.js").then((file) => file.Host),
  letters: () => import("/letters.js").then((file) => file.Letters),
  map: () => import("/map.js").then((file) => file.SiteMap),
  rules: () => import("/rules.js").then((file) => file.Rules),
  changes: () => import("/changes.js").then((file) => file.Changes),
  audit: () => import("/audit.js").then((file) => file.Audit),
  report: () => import("/report.js").then((file) => file.Report),
  schedules: () => import("/stack.js").then((file) => file.Schedules),
  stack: () => import("/stack.js").then((file) => file.Stack),
  query: () => import("/query.js").then((file) => file.Query),
  data: () => import("/data.js").then((file) => file.Data),
};
const PLACES = [["", "Runs"], ["new", "New crawl"], ["explain", "Explain"], ["host", "Hosts"], ["letters", "Dead letters"], ["schedules", "Schedules"], ["stack", "Workers"], ["query", "Query"]];
/** Screens that the hosted console lacks, with their titles. */
const ABSENT = { rules: "Try rules", audit: "Audit", schedules: "Schedules", query: "Query" };
const THEMES = ["auto", "light", "dark"];
const THEME = "orbweaver-console-theme", FIRST_MS = 200, IDLE_MS = 5_000;

/** Take the token out of the address, where `orbweaver console` has put it, and keep it; whether there was one. @param {string} place where to go on */
function takeToken(place) {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    localStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", place);
  }
  return Boolean(found);
}

/** What is about users: a file that is read where there are any. @param {"Door" | "User" | "NotHere"} name */
const ofSession = (name) => (/** @type {any} */ given) => {
  const [Found, setFound] = useState(/** @type {any} */ (null));
  useEffect(() => { import("/session.js").then((file) => setFound(() => file[name])); }, []);
  return Found && html`<${Found} ...${given} />`;
};
const Door = ofSession("Door"), User = ofSession("User"), NotHere = ofSession("NotHere");

/** Read a part of an address, which a person may have typed. @param {string} text */
const plain = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [screen, ...rest] = path.split("/");
  return { screen, of: plain(rest.join("/")), query: new URLSearchParams(query ?? "") };
}

function ThemeSwitch() {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "auto");
  useEffect(() => {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return html`<label class="theme">Theme <select value=${theme} onChange=${(/** @type {any} */ event) => setTheme(event.target.value)}>
    ${THEMES.map((one) => html`<option value=${one}>${one}</option>`)}
  </select></label>`;
}

/** @param {{name: string, of: string, query: URLSearchParams}} given */
function Later({ name, of, query }) {
  const [screen, setScreen] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const load = /** @type {any} */ (SCREENS)[name];
    if (load) load().then((/** @type {any} */ found) => setScreen(() => found));
  }, [name]);
  if (!(name in SCREENS)) return html`<h1>Page not found</h1><p><a href="#/">All runs</a></p>`;
  return screen ? html`<${screen} of=${of} query=${query} key=${of} />` : html`<${Loading} />`;
}

/** @param {{said: string}} given what went wrong on the way in */
function App({ said }) {
  const [at, setAt] = useState(route());
  const [about, setAbout] = useState(/** @type {any} */ (null));
  // Why nobody is known who asks.
  const [unknown, setUnknown] = useState(said || (token() ? "" : PRINTED));
  const hosted = Boolean(user());
  const stranger = !token();
  const places = stranger ? [] : PLACES.filter(([name]) => !hosted || (!(name in ABSENT) && (!["new", "letters"].includes(name) || steers())));
  useEffect(() => {
    const refused = (/** @type {any} */ event) => { if (event.detail) setUnknown(event.detail); };
    addEventListener("unknown", refused);
    // The address of another start, in the same tab: what was refused is asked for anew.
    const moved = (/** @type {HashChangeEvent} */ event) => { if (takeToken(new URL(event.oldURL).hash)) return location.reload(); setAt(route()); window.scrollTo(0, 0); };
    addEventListener("hashchange", moved);
    return () => { removeEventListener("hashchange", moved); removeEventListener("unknown", refused); };
  }, []);
  // After the rows of a screen; again and again until workers run.
  useEffect(() => {
    let timer = 0;
    const look = () => { timer = setTimeout(look, IDLE_MS); ask("/console/about").then((found) => { setAbout(found); if (!found.idle) clearTimeout(timer); }, () => clearTimeout(timer)); };
    timer = setTimeout(look, FIRST_MS);
    return () => clearTimeout(timer);
  }, [at]);
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
    <header>
      <a class="brand" href="#/">Orbweaver</a>
      <nav aria-label="Screens">${places.map(([name, title]) => html`<a href=${`#/${name}`} aria-current=${at.screen === name || (name === "" && ["run", "data", "map", "changes", "rules", "report", "audit"].includes(at.screen)) ? "page" : null}>${title}</a>`)}</nav>
      <span class="where" title=${about?.where}>${about?.where}</span>
      ${hosted && html`<${User} ended=${() => setUnknown("Your sign-in has ended")} />`}
      <${ThemeSwitch} />
    </header>
    <main id="main" tabindex="-1">
      ${unknown && html`<${Door} why=${unknown} />`}
      ${about?.idle && at.screen !== "run" && html`<div class="notice" role="status"><p><${Said} text=${about.idle} /></p></div>`}
      ${stranger ? null : hosted && at.screen in ABSENT ? html`<${NotHere} title=${/** @type {any} */ (ABSENT)[at.screen]} command=${at.screen === "audit" && `orbweaver audit ${at.of} --target aws`} />` : at.screen === "" ? html`<${Runs} query=${at.query} />` : html`<${Later} key=${at.screen} name=${at.screen} of=${at.of} query=${at.query} />`}
    </main>
    <footer>${about && `Orbweaver ${about.version}`} ${about && !about.billed && "· running here is free; dollars are what AWS would charge"}</footer>`;
}

/** Begin: with a token from the address, or on the way back from where one signs in. */
async function begin() {
  const loopback = takeToken("#/");
  if (loopback) sessionStorage.removeItem(SESSION);
  const arrives = !loopback && /[?&](code|error)=/.test(location.search);
  const said = arrives ? await (await import("/session.js")).arrive() : "";
  render(html`<${App} said=${said} />`, /** @type {Element} */ (document.getElementById("app")));
}

begin();
