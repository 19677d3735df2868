"""Modules of commands. Each registers its commands as `COMMANDS`.

crawl_start   options of crawl and start
crawl         crawl, start
init_check    init, check
custom        functions of the user's own: extractors
robots_url    robots, url
extract       extract
scrape        scrape
look          status, pages, page, export
explain       explain
hosts_report  hosts, report
edit_retry    edit, retry
steer         pause, resume, cancel, local, deploy, destroy
workers       workers
schedule      schedule
dlq           dlq
forget        forget
cost          cost, estimate
metrics       metrics
serve         serve
console       console
deliver       deliver
doctor        doctor
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orbweaver.cli.command import Command

# Name, module and help of each command, in the order of `orbweaver --help`. A module is imported
# when its command is typed.
_COMMANDS = (
    ("init", "commands.init_check", "create a definition with every key and its default"),
    ("check", "commands.init_check", "check a definition, and show what it does or what is wrong"),
    ("estimate", "commands.cost", "estimate AWS usage and cost of a crawl before it starts"),
    ("crawl", "commands.crawl_start", "crawl on this machine and write the results to files"),
    ("start", "commands.crawl_start", "start a crawl and print its id"),
    ("status", "commands.look", "show the progress of a crawl"),
    ("pause", "commands.steer", "pause a crawl (no cost while paused)"),
    ("resume", "commands.steer", "resume a paused crawl"),
    ("cancel", "commands.steer", "cancel a crawl; queued URLs are not requested"),
    ("edit", "commands.edit_retry", "change limits, delay, patterns or rules of a running crawl"),
    ("retry", "commands.edit_retry", "request the failed URLs of a crawl again"),
    ("hosts", "commands.hosts_report", "show a crawl's hosts: counts, delays, blocks"),
    (
        "report",
        "commands.hosts_report",
        "show where a crawl's requests went, and what it left out and why, with examples",
    ),
    ("cost", "commands.cost", "show AWS usage and cost of a crawl"),
    ("pages", "commands.look", "list the pages of a crawl"),
    ("page", "commands.look", "show the record of a URL"),
    ("export", "commands.look", "write page records to files"),
    ("robots", "commands.robots_url", "fetch a robots.txt and show whether it allows a URL"),
    (
        "url",
        "commands.robots_url",
        "show the canonical form of a URL, and whether a crawl would follow it",
    ),
    ("explain", "commands.explain", "explain why a URL was or was not crawled, from stored data"),
    ("scrape", "commands.scrape", "request one page and print its main text"),
    ("extract", "commands.extract", "try the item rules of a definition on one page"),
    ("query", "query.command", "query exports with SQL, in a folder or of a stack (--target)"),
    ("audit", "audit.command", "check exported pages and links for faults of the site"),
    ("generate", "generate.command", "write sitemap.xml or llms.txt from exported pages"),
    ("check-links", "check_links.command", "check the links of a site or of a folder of files"),
    ("deliver", "commands.deliver", "deliver an existing export again"),
    ("local", "commands.steer", "manage the stack on this machine: up, down, status"),
    (
        "dlq",
        "commands.dlq",
        "inspect, redrive or delete dead letters, which no worker could process",
    ),
    ("forget", "commands.forget", "erase a URL, a host or a crawl: records, bodies, exports"),
    ("metrics", "commands.metrics", "serve metrics of running crawls to Prometheus"),
    (
        "serve",
        "commands.serve",
        "run the crawls of a store until stopped, with schedules, webhooks and the HTTP API",
    ),
    ("console", "commands.console", "monitor and control crawls in a browser"),
    (
        "schedule",
        "commands.schedule",
        "schedule recurring crawls: put, list, pause, resume, remove",
    ),
    (
        "workers",
        "commands.workers",
        "switch all workers of a stack off or on; messages wait meanwhile",
    ),
    (
        "doctor",
        "commands.doctor",
        "test an AWS account for everything that the stack needs, and write a report",
    ),
    ("deploy", "commands.steer", "deploy or update the stack"),
    ("destroy", "commands.steer", "remove the stack"),
)
MODULES = {name: module for name, module, _ in _COMMANDS}
HELP = {name: text for name, _, text in _COMMANDS}


def load(name: str) -> "Command":
    commands: tuple[Command, ...] = import_module(f"orbweaver.cli.{MODULES[name]}").COMMANDS
    return next(command for command in commands if command.name == name)
