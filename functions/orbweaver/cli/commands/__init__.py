"""Modules of commands. Each registers its commands as `COMMANDS`.

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

# Module of each command, in the order of `orbweaver --help`. A module is imported on first use.
MODULES = {
    **dict.fromkeys(("init", "check"), "commands.init_check"),
    "estimate": "commands.cost",
    **dict.fromkeys(("crawl", "start"), "commands.crawl"),
    "status": "commands.look",
    **dict.fromkeys(("pause", "resume", "cancel"), "commands.steer"),
    **dict.fromkeys(("edit", "retry"), "commands.edit_retry"),
    **dict.fromkeys(("hosts", "report"), "commands.hosts_report"),
    "cost": "commands.cost",
    **dict.fromkeys(("pages", "page", "export"), "commands.look"),
    **dict.fromkeys(("robots", "url"), "commands.robots_url"),
    "explain": "commands.explain",
    "scrape": "commands.scrape",
    "extract": "commands.extract",
    "query": "query.command",
    "deliver": "commands.deliver",
    "local": "commands.steer",
    "dlq": "commands.dlq",
    "forget": "commands.forget",
    "metrics": "commands.metrics",
    "serve": "commands.serve",
    "console": "commands.console",
    "schedule": "commands.schedule",
    "workers": "commands.workers",
    "doctor": "commands.doctor",
    **dict.fromkeys(("deploy", "destroy"), "commands.steer"),
}


def load(name: str) -> "Command":
    commands: tuple[Command, ...] = import_module(f"orbweaver.cli.{MODULES[name]}").COMMANDS
    return next(command for command in commands if command.name == name)
