// Sign-in to the hosted console, on the pages of its user pool: a code with a proof (PKCE), because a
// page keeps no secret. The token belongs to this tab; no refresh token is kept.
import { html, useState, useEffect } from "/vendor/preact-htm.js";
import { SESSION, PRINTED, user, moment, Said } from "/lib.js";
import { Act } from "/parts.js";

const BEGUN = "orbweaver-console-begun";
const SOON_MS = 5 * 60_000;

/** Where one signs in; null where there are no users: on one's own machine. */
async function pages() {
  const reply = await fetch("/sign-in.json").catch(() => null);
  return reply?.ok ? reply.json() : null;
}

/** @param {Uint8Array} bytes */
const spelled = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const chance = () => spelled(crypto.getRandomValues(new Uint8Array(32)));

/** @param {{client: string, pages: string}} at */
async function signIn(at) {
  const begun = { state: chance(), proof: chance(), place: location.hash };
  sessionStorage.setItem(BEGUN, JSON.stringify(begun));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.proof));
  const asked = { response_type: "code", client_id: at.client, redirect_uri: `${location.origin}/`, scope: "openid", state: begun.state, code_challenge: spelled(new Uint8Array(digest)), code_challenge_method: "S256" };
  location.assign(`${at.pages}/oauth2/authorize?${new URLSearchParams(asked)}`);
}

/** Come back from there: trade the code for a token. What went wrong, if anything did. */
export async function arrive() {
  const given = new URLSearchParams(location.search);
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "null");
  sessionStorage.removeItem(BEGUN);
  history.replaceState(null, "", `/${begun?.place ?? ""}`);
  if (!begun || given.get("state") !== begun.state) return "This sign-in was started in another tab. Sign in again.";
  if (!given.get("code")) return `Sign-in failed: ${given.get("error_description") ?? given.get("error")}`;
  const at = await pages();
  const body = new URLSearchParams({ grant_type: "authorization_code", client_id: at?.client ?? "", code: given.get("code") ?? "", redirect_uri: `${location.origin}/`, code_verifier: begun.proof });
  const reply = at && (await fetch(`${at.pages}/oauth2/token`, { method: "POST", body }).catch(() => null));
  const found = reply?.ok ? await reply.json() : null;
  if (!found?.access_token) return "The sign-in could not be completed. Try again.";
  sessionStorage.setItem(SESSION, found.access_token);
  return "";
}

/** Forget the token, and have the pages forget who signed in. */
async function signOut() {
  const at = await pages();
  sessionStorage.clear();
  if (at) location.assign(`${at.pages}/logout?${new URLSearchParams({ client_id: at.client, logout_uri: `${location.origin}/` })}`);
}

/** Who is signed in, what they may, and until when; `ended` is called then. @param {{ended: () => void}} given */
export function User({ ended }) {
  const who = user();
  const [soon, setSoon] = useState(false);
  useEffect(() => {
    const left = (who?.untilMs ?? 0) - Date.now();
    const timers = [setTimeout(() => setSoon(true), Math.max(0, left - SOON_MS)), setTimeout(ended, Math.max(0, left))];
    return () => timers.forEach(clearTimeout);
  }, [who?.untilMs]);
  if (!who) return null;
  return html`<span class="user">${who.name} (${who.steers ? "can steer" : "read only"}) <span class=${soon ? "warn" : ""}>until ${moment(who.untilMs)}</span> <${Act} kind="quiet" label="Sign out" act=${signOut} /></span>`;
}

/** The door: shown to whom nobody knows, or not any more. @param {{why: string}} given */
export function Door({ why }) {
  const [at, setAt] = useState(/** @type {any} */ (undefined));
  useEffect(() => { pages().then(setAt); }, []);
  if (at === undefined) return null;
  return html`<div class=${`notice ${at && why === PRINTED ? "" : "bad"}`} role="alert"><p>${!at ? html`<${Said} text=${`${why[0].toUpperCase()}${why.slice(1)}. Each start of the console has its own token.`} />` : why === PRINTED ? "Sign in to see and steer crawls." : why}</p>
    ${at && html`<div class="actions"><${Act} kind="main" label="Sign in" act=${() => signIn(at)} /></div>`}</div>`;
}

/** A screen that the hosted console lacks. @param {{title: string, command: string | false}} given a command that shows the same */
export const NotHere = ({ title, command }) => html`<h1 tabindex="-1">${title}</h1><div class="empty"><p>The hosted console does not show this.</p>
  <p class="muted">Open it on your own machine with AWS credentials: <code>orbweaver console --target aws</code></p>${command && html`<p class="muted">Or run <code>${command}</code></p>`}</div>`;
