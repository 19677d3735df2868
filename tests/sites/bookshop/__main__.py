"""Serve the bookshop until a signal: `python -m tests.sites.bookshop --port 8000`."""

from __future__ import annotations

import argparse

from tests.sites.bookshop import BOOKS, SEED, SLOW_S, Bookshop
from tests.sites.child import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sites.bookshop")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--books", type=int, default=BOOKS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--slow-s", type=float, default=SLOW_S, help="what the slow page takes")
    broken = "the share of books whose pages have a broken template"
    parser.add_argument("--broken", type=float, default=0.0, metavar="0..1", help=broken)
    options = parser.parse_args()
    shop = Bookshop(
        books=options.books, seed=options.seed, slow_s=options.slow_s, broken=options.broken
    )
    run(shop, options.port)


if __name__ == "__main__":
    main()
