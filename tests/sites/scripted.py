"""Script-only application: its pages have no content until a script has fetched it."""

from __future__ import annotations

import json

from tests.sites import graph
from tests.sites.server import Answer

SHELL = b"<title>Shop</title><div id=root></div><script type=module src=/app.js></script>"
APP = b"""
const data = await (await fetch('/data' + location.pathname)).json();
document.title = data.title;
const root = document.getElementById('root');
for (const place of data.links) {
  const link = document.createElement('a');
  link.href = '/page/' + place;
  link.textContent = 'Page ' + place;
  root.append(link);
}
root.append('What this page has to say is long enough to be found. '.repeat(10));
fetch('/private/secret').catch(() => 0);
fetch('/buy', {method: 'POST'}).catch(() => 0);
"""


def typed(kind: str, body: bytes) -> Answer:
    return Answer(headers=(("Content-Type", kind),), body=body)


def application(size: int) -> dict[str, graph.Script]:
    """Build this many pages that link to two others each, and `/plain`, which needs no script."""
    pages: dict[str, graph.Script] = {
        "/app.js": typed("text/javascript", APP),
        "/plain": graph.page("Plain", ["/page/0"], text="It has its text. " * 40),
        "/robots.txt": typed("text/plain", b"User-agent: *\nDisallow: /private/\n"),
    }
    for place in range(size):
        links = [one for one in (2 * place + 1, 2 * place + 2) if one < size]
        data = json.dumps({"title": f"Page {place}", "links": links}).encode()
        pages[f"/page/{place}"] = typed("text/html", SHELL)
        pages[f"/data/page/{place}"] = typed("application/json", data)
    return pages
