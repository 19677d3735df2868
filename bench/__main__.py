"""`python -m bench`: measure, or write the page of the last results (see the package)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import contest, render
from bench.session import Asked, Session
from bench.sites import FAMILIES, SITES, TLS, named
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


LAST = contest.HOME / "results" / "last.json"
PAGE = contest.ROOT / "docs" / "benchmarks.md"
SAVED = PAGE.with_suffix("")
FAILED, USAGE, INTERRUPTED = 1, 2, 130
QUIET_LOAD = 0.5


def main(words: Sequence[str] | None = None) -> int:
    """Run the requested measurements. Return 1 after a void round, or without a measurement."""
    asked = _parser().parse_args(words)
    if asked.render:
        return _render([asked.results] if asked.results else sorted(SAVED.glob("*.json")))
    try:
        wanted = _wanted(asked)
    except KeyError as error:
        print(f"there is no {error}: {', '.join([*SITES, *FAMILIES, *contest.ALL])}, and"
              f" sites with {TLS}", file=sys.stderr)  # fmt: skip
        return USAGE
    if not wanted.places or not wanted.clients:
        print("nothing is left to be measured", file=sys.stderr)
        return FAILED
    return _measure(wanted, asked)


def _measure(wanted: Asked, asked: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        session = Session(wanted, Path(folder), _say, _show)
        if (load := session.results["machine"]["load"]) > QUIET_LOAD:
            _say(f"this machine is busy (load {load:.1f}): the figures will be too low")
        try:
            session.run()
        except LocalStackError as error:
            print(error, file=sys.stderr)
            return FAILED
        except KeyboardInterrupt:
            _say("\ninterrupted; what was measured is kept")
            _keep(session.results, asked.results)
            return INTERRUPTED
    results = session.results
    kept = _keep(results, asked.results)
    _say("\n" + render.table(results) + f"\n\n{kept}")
    if results["void"]:
        return FAILED
    if asked.save:
        SAVED.mkdir(exist_ok=True)
        name = f"{results['at'][:19].replace(':', '')}-{results['machine']['python']}.json"
        (SAVED / name).write_text(_json(results))
        return _render(sorted(SAVED.glob("*.json")))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench")
    sites = f"which: {', '.join([*SITES, *FAMILIES])}; with {TLS}: over HTTPS (all,tls)"
    parser.add_argument("--sites", metavar="A,B", help=sites)
    parser.add_argument("--peers", metavar="A,B", help=f"who: {', '.join(contest.ALL)} (all)")
    parser.add_argument("--rounds", type=int, help="how often all take their turns (3)")
    parser.add_argument(
        "--pages", type=int, help="of the made-up sites (3000; large ones: a third)"
    )
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a turn (900)")
    quick = "the floor and the worker, once, on 200 made-up pages; other options hold"
    parser.add_argument("--quick", action="store_true", help=quick)
    saved = SAVED.relative_to(contest.ROOT)
    parser.add_argument(
        "--save", action="store_true", help=f"keep the result in {saved}, and write the page anew"
    )
    parser.add_argument(
        "--render", action="store_true", help=f"write docs/benchmarks.md from {saved}, and end"
    )
    results = f"where to write results ({LAST.relative_to(contest.ROOT)}), or what to render"
    parser.add_argument("--results", type=Path, metavar="FILE", help=results)
    return parser


def _wanted(asked: argparse.Namespace) -> Asked:
    """Combine the options. Missing sites and clients are omitted with a message."""
    quick = asked.quick
    places = named(asked.sites or ("generated-30" if quick else "all,tls"))
    names = (asked.peers or ("floor,worker" if quick else ",".join(contest.ALL))).split(",")
    clients = [contest.ALL[name] for name in dict.fromkeys(names)]
    return Asked(
        places=[place for place in places if _here(place.site.absent)],
        clients=[client for client in clients if _here(client.absent)],
        rounds=asked.rounds or (1 if quick else 3),
        once=quick,
        pages=asked.pages or (200 if quick else 3_000),
        limit_s=asked.limit,
        load_s=0.5 if quick else 3.0,
    )


def _here(why_absent: str) -> bool:
    if why_absent:
        _say(f"left out: {why_absent}")
    return not why_absent


def _keep(results: dict[str, Any], file: Path | None) -> Path:
    kept = file or LAST
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(_json(results))
    return kept


def _json(results: dict[str, Any]) -> str:
    """Encode results as JSON with one line per run."""
    runs = ",\n".join("  " + json.dumps(run) for run in results["runs"])
    rest = json.dumps({**results, "runs": []}, indent=1)
    return rest.replace('"runs": []', f'"runs": [\n{runs}\n ]' if runs else '"runs": []') + "\n"


def _render(files: Sequence[Path]) -> int:
    if not files or not all(file.is_file() for file in files):
        print("there are no such results: run `make bench ARGS=--save`", file=sys.stderr)
        return FAILED
    render.write([json.loads(file.read_text()) for file in files], PAGE)
    print(PAGE)
    return 0


def _say(text: str) -> None:
    _show("")
    print(text, flush=True)


def _show(text: str) -> None:
    if sys.stdout.isatty():
        print(f"\r\x1b[K{text}", end="", flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # SIGTERM acts like Ctrl-C, even if the parent process ignores it.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    sys.exit(main())
