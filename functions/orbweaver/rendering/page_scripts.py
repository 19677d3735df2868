"""Define the scripts that run in pages.

The first script makes a page's clock and random numbers deterministic. It runs in each document
before the document's own scripts, so that two renderings of the same input are equal. The other
scripts read the page. They run in an isolated world, in which the page can change nothing.
"""

from __future__ import annotations

import json

WORLD = "orbweaver"
# Maximum number of a page's calls that change its history. Further calls have no effect. Chromium
# ignores calls after 200 in 10 s, too, but reports each of them to its main process. A loop of such
# calls then never ends.
HISTORY_EDITS_MAX = 100

# The clock starts at the time of the task. It advances to the due time of each timer that fires. It
# also advances a little at each read, so that a loop that waits for it ends. Animation frames are
# timers of 16 ms, because a page does not draw while time is stopped. Random numbers come from one
# seed. Functions that a page does not have stay undefined: `crypto.randomUUID` does not exist on
# `http:`.
_DETERMINISM = """(() => {
  const base = BASE;
  let now = 0;
  const look = () => (now += 0.01);
  const wall = () => Math.floor(base + look());
  const NativeDate = Date;
  const FixedDate = new Proxy(NativeDate, {
    construct: (target, given, made) =>
      Reflect.construct(target, given.length ? given : [wall()], made),
    apply: () => new NativeDate(wall()).toString(),
    get: (target, key) => (key === 'now' ? wall : Reflect.get(target, key)),
  });
  NativeDate.prototype.constructor = FixedDate;
  window.Date = FixedDate;
  Performance.prototype.now = () => look();
  Object.defineProperty(Performance.prototype, 'timeOrigin', {get: () => base, configurable: true});
  const delayed = (set, again) => function (callback, delay, ...given) {
    if (typeof callback !== 'function') return set(callback, delay, ...given);
    const step = Math.max(Number(delay) || 0, 0);
    let due = now + step;
    return set(function () {
      if (now < due) now = due;
      if (again) due = now + step;
      return callback.apply(this, arguments);
    }, delay, ...given);
  };
  const later = delayed(window.setTimeout.bind(window), false);
  window.setTimeout = later;
  window.setInterval = delayed(window.setInterval.bind(window), true);
  window.requestAnimationFrame = (callback) => later(() => callback(look()), 16);
  window.cancelAnimationFrame = window.clearTimeout.bind(window);
  let edits = 0;
  for (const name of ['pushState', 'replaceState']) {
    const edit = History.prototype[name];
    History.prototype[name] = function (...given) {
      edits += 1;
      if (edits <= HISTORY_EDITS_MAX) edit.apply(this, given);
    };
  }
  let state = 0x9e3779b9;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  Math.random = () => next() / 4294967296;
  Crypto.prototype.getRandomValues = function (array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let place = 0; place < bytes.length; place += 1) bytes[place] = next() & 255;
    return array;
  };
  if ('randomUUID' in Crypto.prototype) {
    Crypto.prototype.randomUUID = () => {
      const bytes = Array.from({length: 16}, () => next() & 255);
      bytes[6] = (bytes[6] & 15) | 64;
      bytes[8] = (bytes[8] & 63) | 128;
      const hex = bytes.map((one) => one.toString(16).padStart(2, '0')).join('');
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    };
  }
})();"""

# Returns the number of document changes since the first call.
CHANGES = """(() => {
  if (globalThis.changes === undefined) {
    globalThis.changes = 0;
    new MutationObserver((found) => { globalThis.changes += found.length; }).observe(document, {
      subtree: true, childList: true, attributes: true, characterData: true,
    });
  }
  return globalThis.changes;
})()"""

# Copies open shadow roots and documents of frames into the page, because parsers skip templates and
# do not read frames. The copies are made in a document whose scripts do not run.
_HTML = """(() => {
  const inert = document.implementation.createHTMLDocument('');
  const framed = (one) => {
    try { return one.contentDocument && one.contentDocument.body; } catch { return null; }
  };
  const fill = (from, to, resolved) => {
    const copies = to.querySelectorAll('*');
    from.querySelectorAll('*').forEach((one, place) => {
      const copy = copies[place];
      if (resolved && one.hasAttribute('href') && one.href) copy.setAttribute('href', one.href);
      const frame = one.localName === 'iframe' ? framed(one) : null;
      if (frame) {
        const part = inert.createElement('div');
        part.setAttribute('data-frame', one.contentDocument.URL);
        frame.childNodes.forEach((child) => part.append(inert.importNode(child, true)));
        fill(frame, part, true);
        copy.after(part);
      }
      if (one.shadowRoot) {
        const part = inert.createElement('div');
        part.setAttribute('data-shadow-root', '');
        one.shadowRoot.childNodes.forEach((child) => part.append(inert.importNode(child, true)));
        fill(one.shadowRoot, part, resolved);
        copy.prepend(part);
      }
    });
  };
  const all = document.documentElement;
  let html = '';
  if (all) {
    const parts = [...all.querySelectorAll('*')].some((one) => one.shadowRoot
      || (one.localName === 'iframe' && framed(one)));
    let whole = all;
    if (parts) {
      whole = inert.importNode(all, true);
      fill(all, whole, false);
    }
    html = (document.doctype ? '<!DOCTYPE html>' : '') + whole.outerHTML;
  }
  return {html: html.slice(0, LIMIT).toWellFormed(), cut: html.length > LIMIT};
})()"""


def determinism(now_ms: int) -> str:
    """Return the script that makes a page's clock and random numbers deterministic."""
    script = _DETERMINISM.replace("BASE", json.dumps(now_ms))
    return script.replace("HISTORY_EDITS_MAX", json.dumps(HISTORY_EDITS_MAX))


def html_of_page(chars_max: int) -> str:
    """Return the script that reads a page's HTML, and whether it was truncated to `chars_max`."""
    return _HTML.replace("LIMIT", json.dumps(chars_max))
