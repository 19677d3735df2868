"""Servers that record connections, and a page that tries every API to reach them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.rendering.stage import page

# Time for a page's attempts.
HELD_S = 1.5


@dataclass
class Listeners:
    """Loopback ports, TCP of both families and UDP: records arrivals by path or type."""

    port: int = 0
    udp_port: int = 0
    paths: list[str] = field(default_factory=list)
    datagrams: int = 0
    connections: int = 0
    html: bytes = b""
    _tasks: set[asyncio.Task[object]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request: the page at the root, placeholders elsewhere."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            self.paths.append(path)
            if path.startswith("/hold"):
                await asyncio.sleep(HELD_S)
            kind, body = answer_of(path)
            if path == "/":
                kind, body = "text/html", self.html
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nAccess-Control-Allow-Origin: *\r\n"
                b"Service-Worker-Allowed: /\r\nSupports-Loading-Mode: credentialed-prerender\r\n"
                b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(body))
            )
            writer.write(body)
            await writer.drain()

    async def close(self) -> None:
        """Leave open requests unanswered."""
        for one in self._tasks:
            one.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # Transports close in the loop's next turn.

    def kinds(self) -> set[str]:
        return {path.strip("/").partition("?")[0] for path in self.paths} - {"", "hold"}


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, listeners: Listeners) -> None:
        self.listeners = listeners

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.listeners.datagrams += 1


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Listeners]:
    listeners = Listeners()
    server = await asyncio.start_server(listeners.serve, "127.0.0.1", 0)
    listeners.port = server.sockets[0].getsockname()[1]
    servers = [server]
    with contextlib.suppress(OSError):
        servers.append(await asyncio.start_server(listeners.serve, "::1", listeners.port))
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Datagrams(listeners), local_addr=("127.0.0.1", 0), family=socket.AF_INET
    )
    listeners.udp_port = transport.get_extra_info("sockname")[1]
    listeners.html = html_of(listeners.port, listeners.udp_port).encode()
    try:
        yield listeners
    finally:
        transport.close()
        for one in servers:
            one.close()
        await listeners.close()
        for one in servers:
            await one.wait_closed()


SCRIPTS = {
    "worker.js": (
        "fetch('/in-worker-fetch'); importScripts('/in-worker-import');"
        " new Worker('/nested-worker.js'); new WebSocket(`ws://${location.host}/in-worker-ws`)"
    ),
    "nested-worker.js": "fetch('/in-nested-worker')",
    "shared-worker.js": "fetch('/in-shared-worker'); importScripts('/in-shared-import')",
    "service-worker.js": (
        "fetch('/in-service-worker'); self.addEventListener('install', () => self.skipWaiting());"
        "self.addEventListener('fetch', (event) => event.respondWith(fetch('/by-service-worker')))"
    ),
    "module.js": "import('/imported-by-module')",
}


def answer_of(path: str) -> tuple[str, bytes]:
    name = urlsplit(path).path.strip("/")
    if name in SCRIPTS:
        return "text/javascript", SCRIPTS[name].encode()
    if name.startswith(("iframe", "object", "embed", "popup")):
        return "text/html", f"<img src='/in-{name}'>".encode()
    return "text/plain", b""


def html_of(port: int, udp_port: int) -> str:
    own, other = f"127.0.0.1:{port}", f"localhost:{port}"
    six = f"[::1]:{port}"
    head = f"""
    <link rel=stylesheet href=/stylesheet><link rel=icon href=/icon>
    <link rel=preload as=image href=/preload><link rel=preconnect href=http://{other}>
    <link rel=dns-prefetch href=http://{other}><link rel=prefetch href=/prefetch>
    <link rel=modulepreload href=/modulepreload><link rel=prerender href=/prerender>
    <link rel=manifest href=/manifest><link rel=next href=/next>
    <style>@import '/css-import'; body {{background: url(/css-background)}}
    @font-face {{font-family: x; src: url(/font)}} p {{font-family: x; cursor: url(/cursor), auto}}
    p::before {{content: url(/css-content)}} li {{list-style-image: url(/list-style)}}
    div {{mask-image: url(/mask#x); border-image: url(/border)}}</style>
    <script type=speculationrules>{{"prefetch": [{{"urls": ["/speculation-prefetch"],
    "eagerness": "immediate"}}], "prerender": [{{"urls": ["/speculation-prerender"],
    "eagerness": "immediate"}}]}}</script>"""
    body = f"""
    <img src=/img><img srcset='/srcset 1x'><picture><source srcset=/picture><img></picture>
    <img src=http://{six}/ipv6><img src=http://{other}/localhost><input type=image src=/input>
    <svg><image href=/svg-image /><use href='/svg-use#x'/></svg><p>x</p><ul><li>x</ul><div>x</div>
    <script src=/script></script><script type=module src=/module.js></script>
    <script async src=http://{six}/script-ipv6></script>
    <iframe src=/iframe></iframe><iframe sandbox=allow-scripts src=/iframe-sandbox></iframe>
    <iframe srcdoc="<img src='http://{own}/in-srcdoc'>"></iframe>
    <iframe src="data:text/html,<img src='http://{own}/in-data'>"></iframe>
    <object data=/object type=text/html></object><embed src=/embed type=text/html>
    <video src=/video poster=/poster preload=auto></video><audio src=/audio preload=auto></audio>
    <video><source src=/video-source><track src=/track default kind=subtitles></video>
    <iframe name=held></iframe><form id=get action=/form target=held><input name=a></form>
    <form id=post action=/form-post method=post target=held></form>
    <a id=pinging href=/pinged ping=/ping target=held>x</a>"""
    script = f"""
    const attempt = (what) => {{
      try {{ const done = what(); done?.catch?.(() => 0); }} catch {{}} }};
    [
      () => fetch('/fetch'), () => fetch('http://{other}/fetch-cors'),
      () => fetch('http://{six}/fetch-no-cors', {{mode: 'no-cors'}}),
      () => fetch('/fetch-keepalive', {{keepalive: true}}),
      () => fetch('/fetch-post', {{method: 'POST', body: 'x'}}),
      () => fetch('http://{other}/preflight', {{headers: {{'X-Other': 'x'}}}}),
      () => {{ const one = new XMLHttpRequest(); one.open('GET', '/xhr'); one.send(); }},
      () => {{ const one = new XMLHttpRequest(); one.open('GET', '/xhr-sync', false);
        one.send(); }},
      () => navigator.sendBeacon('/beacon', 'x'),
      () => {{ window.events = new EventSource('/eventsource'); }},
      () => {{ window.socket = new WebSocket('ws://{own}/websocket'); }},
      () => {{ window.other = new WebSocket('ws://{other}/websocket-localhost'); }},
      () => {{ window.secure = new WebSocket('wss://{own}/websocket-secure'); }},
      () => {{ window.transport = new WebTransport('https://{own}/webtransport'); }},
      () => {{ window.worker = new Worker('/worker.js'); }},
      () => {{ window.blob = new Worker(URL.createObjectURL(new Blob(
        ["fetch('http://{own}/in-blob-worker')"]))); }},
      () => {{ window.shared = new SharedWorker('/shared-worker.js'); }},
      () => navigator.serviceWorker.register('/service-worker.js').then(
        () => setTimeout(() => fetch('/after-service-worker'), 300)),
      () => import('/dynamic-import'),
      () => {{ new Image().src = '/image-object'; }},
      () => document.getElementById('get').submit(),
      () => document.getElementById('post').submit(),
      () => document.getElementById('pinging').click(),
      () => CSS.paintWorklet.addModule('/paint-worklet'),
      () => new AudioContext().audioWorklet.addModule('/audio-worklet'),
      () => new FontFace('y', 'url(/font-face)').load(),
      () => window.open('/popup'), () => window.open('http://{other}/popup-localhost', '_blank'),
      () => {{ const one = new RTCPeerConnection({{iceServers: [
        {{urls: ['stun:127.0.0.1:{udp_port}', 'stun:localhost:{udp_port}']}},
        {{urls: ['turn:127.0.0.1:{port}?transport=tcp', 'turn:127.0.0.1:{udp_port}'],
          username: 'x', credential: 'x'}}]}});
        one.createDataChannel('x'); window.peer = one;
        return one.createOffer().then((offer) => one.setLocalDescription(offer)); }},
      () => fetch('/hold'),
    ].forEach(attempt);
    setTimeout(() => {{ location.href = '/location' }}, 2500);"""
    return page(f"{body}<script>{script}</script>", head)
