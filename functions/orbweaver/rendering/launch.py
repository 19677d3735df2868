"""Find or unpack the browser, and define the flags that disable its network.

In a function's code the browser is packed, and it is unpacked on first use into the temporary
folder. Unpacked (209 MB), it does not fit next to the other code, because the limit is 250 MB.
"""

from __future__ import annotations

import fcntl
import hashlib
import html
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from orbweaver.model.compression import zstd_module
from orbweaver.model.settings import INSTALLED, PREFIX, SettingsError
from orbweaver.model.value import value_class

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
# The archive contains the files of the browser. The manifest contains each file's name and size.
ARCHIVE, MANIFEST = "browser.tar.zst", "browser.json"
PROGRAM, LIBRARIES, FONTS = "headless_shell", "lib", "fonts"
FOLDER_PREFIX = "orbweaver-unpacked-"
# Configuration of fonts. Without fonts, the browser hangs at the first page with certain text, and
# dies.
_FONTS_FILE = "fonts.conf"
# The packed browser has no library for 3D. Without these flags, it searches for one, fails, and
# restarts the GPU process. On a slow CPU that happens during the first pages, which then count as
# lost.
_FLAGS = ("--disable-software-rasterizer", "--use-gl=disabled")
_PIECE_BYTES = 1024 * 1024
_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


@value_class
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


class BrowserUnusable(OSError):
    """A packed browser does not match its manifest. The message names the file."""


@value_class
class PackedBrowser:
    """A browser in an archive. `folder` contains the archive.

    The files are unpacked below `parent`, or below the temporary folder if it is None.
    """

    folder: Path
    parent: Path | None = None

    def unpacked(self) -> BrowserProgram:
        """Unpack the browser unless it is already unpacked. Return its program. Raises OSError."""
        manifest = (self.folder / MANIFEST).read_bytes()
        sizes: dict[str, int] = json.loads(manifest)["files"]
        parent = self.parent or Path(tempfile.gettempdir())
        target = parent / f"{FOLDER_PREFIX}{hashlib.sha256(manifest).hexdigest()[:16]}"
        # The folder's name is a hash of the manifest. A finished folder gets this name by a rename.
        # If files are missing later, all are unpacked again.
        if not _is_whole(target, sizes):
            with _locked(target.with_suffix(".lock")):
                if not _is_whole(target, sizes):
                    self._unpack(target, sizes)
        return BrowserProgram(
            path=str(target / PROGRAM),
            flags=_FLAGS,
            environment={
                "LD_LIBRARY_PATH": str(target / LIBRARIES),
                "FONTCONFIG_PATH": str(target),
            },
        )

    def _unpack(self, target: Path, sizes: Mapping[str, int]) -> None:
        unfinished = target.with_suffix(".new")
        # A killed process may have left an incomplete folder.
        for left in (unfinished, target):
            shutil.rmtree(left, ignore_errors=True)
        try:
            self._extract(unfinished, sizes)
            text = _FONTS.format(folder=html.escape(str(target / FONTS)))
            (unfinished / _FONTS_FILE).write_text(text)
            unfinished.rename(target)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def _extract(self, unfinished: Path, sizes: Mapping[str, int]) -> None:
        zstd, archive = zstd_module(), self.folder / ARCHIVE
        try:
            with zstd.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
                for member in tar:
                    self._write(tar, member, unfinished / self._checked_name(member.name, sizes))
        except (EOFError, tarfile.TarError, zstd.ZstdError) as error:
            raise BrowserUnusable(f"{archive} cannot be unpacked: {error}") from error
        if not _is_whole(unfinished, sizes):
            raise BrowserUnusable(f"{archive} lacks files that {MANIFEST} names")

    def _checked_name(self, name: str, sizes: Mapping[str, int]) -> str:
        if name not in sizes:
            raise BrowserUnusable(f"{self.folder / ARCHIVE} holds {name!r}: {MANIFEST} has not")
        return name

    @staticmethod
    def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = tar.extractfile(member)
        if content is None:
            raise BrowserUnusable(f"{member.name!r} is no file")
        with content, file.open("wb") as out:
            shutil.copyfileobj(content, out, _PIECE_BYTES)
        file.chmod(0o755 if member.mode & 0o100 else 0o644)


def find_program(browser: str) -> str | Callable[[], BrowserProgram]:
    """Return the program for the setting `browser`: a path, or a function that unpacks it.

    Raises SettingsError.
    """
    if browser != INSTALLED:
        folder = Path(browser)
        return PackedBrowser(folder=folder).unpacked if folder.is_dir() else browser
    found = find_browser()
    if found is None:
        raise SettingsError(f"{PREFIX}BROWSER is {INSTALLED!r}, and none is: {INSTALL}")
    return found


def _is_whole(folder: Path, sizes: Mapping[str, int]) -> bool:
    try:
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except OSError:
        return False


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold a lock while unpacking, so that only one process unpacks at a time.

    The kernel releases the lock when the process ends in any way.
    """
    place = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
