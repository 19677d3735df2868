"""The browser to start: which one is installed, and the flags that leave it without a network.

The fence, each part of which a test takes away:

- proxy     all traffic goes to a port where nothing listens, loopback's too (`<-loopback>`)
- resolver  no name and no address resolves
- WebRTC    no UDP but by that proxy
- features  service workers are not preloaded, nothing is prefetched, predicted, updated or reported

Web security and site policies stay on. The heap limit ends a page that allocates without end
before it takes the machine's memory. The sandbox is off: neither a function nor a container has
what it needs. Without a network, a home or credentials there is little to reach from outside of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

# The headless shell starts in half the time, and has less to switch off.
BROWSERS = (
    *("chromium-headless-shell", "chrome-headless-shell", "headless_shell"),
    *("chromium", "chromium-browser", "google-chrome"),
)
INSTALL = "install a Chromium, such as Debian's package chromium-headless-shell"
HEAP_MEGABYTES = 256

_FEATURES_OFF = (
    *("ServiceWorkerAutoPreload", "NetworkPrediction", "Prerender2", "OptimizationHints"),
    *("SpeculationRulesPrefetchFuture", "MediaRouter", "DialMediaRouteProvider", "Translate"),
    *("InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater"),
    *("AutofillServerCommunication", "IsolateOrigins", "site-per-process"),
    "IsolateSandboxedIframes",
)
# The parts of the fence, by name.
FENCE: Mapping[str, tuple[str, ...]] = {
    "proxy": ("--proxy-server=127.0.0.1:9",),
    "bypass": ("--proxy-bypass-list=<-loopback>",),
    "resolver": ("--host-resolver-rules=MAP * ~NOTFOUND",),
    "webrtc": (
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ),
    "features": (
        f"--disable-features={','.join(_FEATURES_OFF)}",
        "--disable-quic",
        "--dns-prefetch-disable",
        "--no-pings",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-domain-reliability",
        "--disable-sync",
    ),
}
_OTHER = (
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-client-side-phishing-detection",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
    "--disable-ipc-flooding-protection",
    "--disable-site-isolation-trials",
    "--disable-speech-api",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
    "--use-mock-keychain",
    f"--js-flags=--max-old-space-size={HEAP_MEGABYTES}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserProgram:
    """A browser's program; `flags` and `environment` are what it needs besides what all get."""

    path: str
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def find_browser() -> str | None:
    """Find the program of a browser that can render pages, by the usual names."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def arguments_of(
    program: str, profile: str, fence: Mapping[str, tuple[str, ...]] = FENCE
) -> list[str]:
    """Make the command line of a browser that keeps what it writes in a folder of its own."""
    words = [program, *(["--headless=new"] if "headless" not in program else ["--headless"])]
    words += [f"--user-data-dir={profile}", *_OTHER]
    return [*words, *(flag for flags in fence.values() for flag in flags), "about:blank"]


def environment_of(
    profile: str, needed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Make the whole environment of a browser: nothing of this process's own is in it."""
    return {
        **needed,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": profile,
        "TMPDIR": profile,
        "XDG_CONFIG_HOME": profile,
        "XDG_CACHE_HOME": profile,
        "LANG": "en_US.UTF-8",
        "TZ": "UTC",
    }
