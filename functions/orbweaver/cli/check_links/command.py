"""`check-links`: check the links of a site, or of a folder of HTML and Markdown files."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from orbweaver.cli import option_types
from orbweaver.cli.audit.command import write_report
from orbweaver.cli.command import command, option, store_option
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import add_check
from orbweaver.cli.exit_codes import FAILED, OK, UsageError

if TYPE_CHECKING:
    from orbweaver.cli.check_links.report import LinkReport

SCHEMES = ("http://", "https://")
# Modules with the function `render`.
FORMATS = {
    "text": "check_links.plain",
    "json": "check_links.as_json",
    "sarif": "audit.sarif",
    "junit": "audit.junit",
}


def check_links(arguments: Namespace, around: CliContext) -> int:
    # Imports above would delay the help.
    from orbweaver.cli.causes import code_of
    from orbweaver.cli.check_links.context import CheckContext
    from orbweaver.cli.check_links.plain import summary
    from orbweaver.cli.check_links.report import report_of
    from orbweaver.cli.check_links.verdict import LinkState

    subject, context = arguments.subject, CheckContext(arguments, around)
    context.check_options()
    if subject.lower().startswith(SCHEMES):
        if arguments.base_url is not None:
            raise UsageError("--base-url is for files: leave it out")
        from orbweaver.cli.check_links.site import check_site

        report = report_of(asyncio.run(check_site(subject, context)), subject)
    else:
        from orbweaver.cli.check_links.files import FolderCheck, folder_of

        check = FolderCheck(folder_of(subject, context), context)
        report = report_of(check.check(), subject, shown=check.folder.shown, line=check.line)
    render: Callable[[LinkReport], str]
    render = import_module(f"orbweaver.cli.{FORMATS[arguments.format]}").render
    write_report(render(report), arguments.out, around)
    if arguments.out is not None or arguments.format != "text":
        around.note(summary(report))
    if report.outcomes.get(LinkState.BROKEN):
        return FAILED
    if report.outcomes.get(LinkState.UNVERIFIED) and not report.outcomes.get(LinkState.FINE):
        around.note("nothing could be checked: no link is verified")
        return code_of(report.unjudged[0].reason)
    return OK


COMMANDS = (
    command(
        "check-links",
        check_links,
        option("subject URL|FILE|DIR", "a site, or HTML and Markdown files", type=str),
        option("--base-url URL", "URL at which the files are published; its links mean files"),
        option("--no-external", "check only links within the site or to files"),
        add_check,
        option(
            "--cache TIME",
            "use results of earlier checks of other URLs that are younger than this (1d)",
            type=option_types.duration_s,
        ),
        option(f"--format {'|'.join(FORMATS)}", "output format (text)", default="text"),
        option("--out FILE", "write the report to a file"),
        parents=(store_option,),
    ),
)
