"""`python -m bench.yield`: the yield of a crawler's first requests. The code is in bench/yields.

`yield` is a Python keyword, so no module with this name can be imported.
"""  # noqa: N999

import sys

from bench.yields.command import main

if __name__ == "__main__":
    sys.exit(main())
