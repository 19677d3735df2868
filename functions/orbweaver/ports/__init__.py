"""What the actors need of the world, in the crawl's words.

Every port has a memory adapter and a real one; one contract suite runs on both. A port raises
`Transient` when the same call may succeed later, `Permanent` when it will not and `StoredNewer`
when a newer version can; nothing above an adapter sees a technology's own exception. An operation
that raises may or may not have taken effect: every effect is idempotent.

    queues    what is to be crawled         tables   packs, crawls, claims, hosts, records
    outside   files, events, the web, time  errors   what goes wrong
    allowances  what crawls may use up      couriers  where exports are brought to
    hosts     their slots and robots.txt    schedules  what recurs
    exports   what exporters need           readers  what reads answers
"""

from orbweaver.core.exchange import Failure, Request, Response
from orbweaver.ports.allowances import Allowances
from orbweaver.ports.couriers import Courier, Deliveries
from orbweaver.ports.errors import NOTHING, Permanent, PortError, StoredNewer, TooLarge, Transient
from orbweaver.ports.exports import Catalogue, ExportEvents, Orders
from orbweaver.ports.hosts import Hosts
from orbweaver.ports.outside import Clock, Events, Fetcher, Files, Metrics, Print, Secrets
from orbweaver.ports.queues import DeadLetters, Queue
from orbweaver.ports.readers import Reader
from orbweaver.ports.schedules import Schedules
from orbweaver.ports.tables import Crawls, Frontier, History, Packs, Pages

__all__ = [
    "NOTHING",
    "Allowances",
    "Catalogue",
    "Clock",
    "Courier",
    "Crawls",
    "DeadLetters",
    "Deliveries",
    "Events",
    "ExportEvents",
    "Failure",
    "Fetcher",
    "Files",
    "Frontier",
    "History",
    "Hosts",
    "Metrics",
    "Orders",
    "Packs",
    "Pages",
    "Permanent",
    "PortError",
    "Print",
    "Queue",
    "Reader",
    "Request",
    "Response",
    "Schedules",
    "Secrets",
    "StoredNewer",
    "TooLarge",
    "Transient",
]
