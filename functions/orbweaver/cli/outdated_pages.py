"""Report pages that earlier runs stored with other settings than the command has."""

from __future__ import annotations

from orbweaver.cli import text
from orbweaver.cli.crawl_options import OPTIONS
from orbweaver.cli.session import Session
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.refetch import MISSING
from orbweaver.model.errors import ControlError

NO_PAGES = (
    "no page of earlier runs was stored with other settings: there is nothing to request again"
)


async def outdated_pages(
    session: Session, plan: CrawlSpec, *, is_refetch: bool = False
) -> list[str]:
    """Describe the pages that `--refetch` would request, and the command that requests them.

    Returns [] if there are none.
    """
    try:
        pages, settings = await session.control.outdated_pages(plan)
    except ControlError as error:  # there are too many to request in one step
        return [f"earlier runs stored pages with other settings: {error}"]
    if not pages:
        return []
    was, these = ("was", "this page") if pages == 1 else ("were", "these pages")
    named = ", ".join(sorted(OPTIONS.get(name, "item rules") for name in settings))
    stored = f"{text.plural(pages, 'page')} of earlier runs {was} stored with other settings"
    items = [f"  stored and exported items of {these} come from the earlier rules"]
    command = "the same command" if is_refetch else f"the same command with --refetch {MISSING}"
    return [
        f"{stored} than this command has: {named}",
        *(items if "items" in settings else ()),
        f"  {command} requests {these} again",
    ]
