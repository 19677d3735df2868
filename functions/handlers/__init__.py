"""Define Lambda entry points: each passes its event to one component and returns a response.

Importing a handler is Lambda's init phase, which ends with `bootstrap.prepare`. During this phase
the garbage collector is off, because imports leave no garbage. Its runs took a fifth of the time.
"""

import gc

from orbweaver.adapters.web import tls

gc.disable()  # until `prepare`

with tls.without_authorities():
    import aiohttp  # noqa: F401 - before any other import of it
