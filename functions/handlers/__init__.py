"""Lambda entry points: an event in, one call of an actor, a response out.

Importing one of them is Lambda's init phase: it begins here, and ends with `bootstrap.prepare`.
Nothing that is imported is garbage; to look for some all the same took a fifth of the time.
"""

import gc

from orbweaver.adapters.web import tls

gc.disable()  # until `prepare`

with tls.without_authorities():
    import aiohttp  # noqa: F401 - before any other import of it
