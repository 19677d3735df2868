"""Cases 31, 53, 55 and 74: unresolvable names, and links and redirects to private addresses.

The canary is a local server that a crawl must not reach. The crawl may only use 127.0.0.1 and ::1,
on the other places' ports. URLs that lead to the canary use its own port and other addresses, such
as "this network" (0.0.0.0), which the kernel routes to this machine too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.sites.hostile.model import Asked, Place, Row, Trap, answer, markup, redirect
from tests.sites.steps import Step

EDGE = "edge"
CANARY = "canary"
WILD = "wildcard"
# By their canonical (recorded) form, and as the pages spell them.
SPELLINGS = {
    "http://0.0.0.0:{canary}/dotted": "http://0.0.0.0:{canary}/dotted",
    "http://0.0.0.0:{canary}/number": "http://0:{canary}/number",
    "http://0.0.0.0:{canary}/hexadecimal": "http://0x0:{canary}/hexadecimal",
    "http://0.0.0.0:{canary}/octal": "http://00.00:{canary}/octal",
    "http://0.0.0.0:{canary}/wide": "http://\uff10.\uff10.\uff10.\uff10:{canary}/wide",
    "http://0.0.0.0:{canary}/escaped": "http://%30:{canary}/escaped",
    "http://0.0.0.0:{canary}/user": "http://127.0.0.1@0.0.0.0:{canary}/user",
    "http://[::]:{canary}/": "http://[0:0::0]:{canary}/",
    "http://[::ffff:0:0]:{canary}/": "http://[::ffff:0.0.0.0]:{canary}/",
    "http://169.254.169.254/latest/meta-data/": "http://2852039166/latest/meta-data/",
    "http://[fd00:ec2::254]/": "http://[fd00:ec2::254]/",
    "http://10.0.0.1/": "http://10.1/",
    "http://192.168.0.1:22/": "http://192.168.1:22/",
    "http://127.0.0.2:{canary}/": "http://127.2:{canary}/",
    "http://127.0.0.1:{canary}/": "http://127.0.0.1:{canary}/",
    "http://127.0.0.1:{canary}/number": "http://2130706433:{canary}/number",
    "http://[::ffff:7f00:1]:{canary}/": "http://[::ffff:127.0.0.1]:{canary}/",
    "http://[::1]:{canary}/": "http://[::1]:{canary}/",
    "http://localhost:{canary}/": "http://localhost:{canary}/",
    "http://a.localhost:{canary}/": "http://a.localhost:{canary}/",
    "http://[64:ff9b::a00:1]/": "http://[64:ff9b::10.0.0.1]/",
}
REDIRECTS = {
    "/inward/metadata": "http://169.254.169.254/latest/user-data",
    "/inward/canary": "http://0.0.0.0:{canary}/redirected",
    "/inward/port": "http://127.0.0.1:{canary}/port",
    "/inward/mapped": "http://[::ffff:10.0.0.1]/redirected",
    "/inward/scheme-relative": "//0:{canary}/relative",
    "/inward/twice": "/inward/twice-again",
    "/inward/twice-again": "http://0.0.0.0:{canary}/twice",
}
GOALS = (
    "http://169.254.169.254/latest/user-data",
    "http://0.0.0.0:{canary}/redirected",
    "http://127.0.0.1:{canary}/port",
    "http://[::ffff:a00:1]/redirected",
    "http://0.0.0.0:{canary}/relative",
    "http://0.0.0.0:{canary}/twice",
)


def _wild(asked: Asked) -> Iterable[Step]:
    """Link to two more names below the requested one."""
    host = (asked.heard.header("host") or "").partition(":")[0]
    links = [f"http://{label}.{host}:{asked.ports[WILD]}/" for label in ("x1", "x2")]
    yield answer(markup(host, links).encode(), "Content-Type: text/html")


ROWS = (
    Row(31, "http://no..such-name.invalid/", "a name that no DNS message can hold", None,
        "failed: dns", place=EDGE, asks=0),
    *(
        Row(53, canonical, f"an address inside, as {spelling[7:30]}", None, "failed: address",
            place=EDGE, asks=0)
        for canonical, spelling in SPELLINGS.items()
    ),
    *(
        Row(55, path, f"a redirect to {goal[:40]}", redirect(goal), "redirected: redirect",
            place=EDGE)
        for path, goal in REDIRECTS.items()
    ),
    *(
        Row(55, goal, "where a redirect leads", None, "failed: address", place=EDGE, asks=0,
            linked=False)
        for goal in GOALS
    ),
    Row(55, "/", "a robots.txt that redirects inside", None, "skipped: robots_unreachable",
        place="robots-inward", asks=0),
)  # fmt: skip

PLACES = (
    Place(name=CANARY, crawl="bold", start=False, seed=False),
    Place(name="robots-inward", robots=redirect("http://0.0.0.0:{canary}/robots.txt"), start=False),
    Place(
        name=WILD,
        crawl="bold",
        other=_wild,
        start=False,
        seed=False,
        trap=Trap(74, "names without end below a name", 3, 130, ("depth", "repetition")),
    ),
)
