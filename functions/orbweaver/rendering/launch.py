"""Find the installed browser, and define the flags that disable its network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

# The headless shell starts in half the time and has fewer features to disable.
BROWSERS = (
    *("chromium-headless-shell", "chrome-headless-shell", "headless_shell"),
    *("chromium", "chromium-browser", "google-chrome"),
)
INSTALL = "install a Chromium, such as Debian's package chromium-headless-shell"
# Limit of a page's JavaScript heap. It ends a page that allocates endlessly before the page
# exhausts the machine's memory.
HEAP_MEGABYTES = 256

_FEATURES_OFF = (
    *("ServiceWorkerAutoPreload", "NetworkPrediction", "Prerender2", "OptimizationHints"),
    *("SpeculationRulesPrefetchFuture", "MediaRouter", "DialMediaRouteProvider", "Translate"),
    *("InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater"),
    *("AutofillServerCommunication", "IsolateOrigins", "site-per-process"),
    "IsolateSandboxedIframes",
)
# Flags that disable the network, by part. A test removes each part in turn. All traffic, including
# loopback (`<-loopback>`), goes to a proxy port without a listener. No name and no address
# resolves. WebRTC uses UDP only through that proxy. Preloading, prefetch, prediction, updates and
# reports are off.
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
    # Functions and containers do not meet the requirements of the browser's sandbox. Without a
    # network, a home folder or credentials, an escape gains little. Web security and site policies
    # are enabled.
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
    """A browser's program. `flags` and `environment` are added to the usual ones."""

    path: str
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def find_browser() -> str | None:
    """Return the path of an installed browser that can render pages.

    Searches `BROWSERS` in PATH.
    """
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def arguments_of(
    program: str, profile: str, fence: Mapping[str, tuple[str, ...]] = FENCE
) -> list[str]:
    """Return the command line of a browser. `profile` is the path of its own profile folder."""
    words = [program, *(["--headless=new"] if "headless" not in program else ["--headless"])]
    words += [f"--user-data-dir={profile}", *_OTHER]
    return [*words, *(flag for flags in fence.values() for flag in flags), "about:blank"]


def environment_of(
    profile: str, needed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the complete environment of a browser. It inherits no variable of this process.

    `needed` are the variables of the program.
    """
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
