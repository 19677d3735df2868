"""`python -m bench.yield`: what a crawler's first requests bring; all of it is in bench/yields.

`yield` is a word of the language, so that nothing can be imported by this name.
"""  # noqa: N999

import sys

from bench.yields.command import main

if __name__ == "__main__":
    sys.exit(main())
