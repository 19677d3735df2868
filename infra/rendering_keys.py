"""Context keys of rendering: docs/rendering.md."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from infra.console_keys import ConsoleKeys
from infra.keys import choice, number, unfit
from infra.memory import unfit_renderer_memory
from orbweaver.rendering.launch import INSTALL, find_browser
from orbweaver.rendering.task import RenderLimits

if TYPE_CHECKING:
    from orbweaver.model.settings import Settings


# Space for the browser (214 MB unpacked), for Chromium's files (there is no shared memory), and for
# pages' files. Lambda's default is 512 MB.
STORAGE_MB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderingKeys(ConsoleKeys):
    """Settings of the renderer."""

    rendering: str = choice(
        "no",
        ("no", "yes"),
        "yes: functions with a browser can run the scripts of pages: docs/rendering.md",
    )
    # 1,769 MB equal one CPU, which four pages at a time use fully.
    renderer_memory_mb: int = number(
        2048, 512, 10_240, "memory of a renderer in MB; CPU grows with it"
    )
    # One minute of crawling (a round), a last request, a last page, and saving the results.
    renderer_timeout_s: int = number(240, 60, 900, "timeout of a renderer")
    renderer_concurrency_max: int = number(10, 2, 1_000, "concurrent renderers", local=2)
    # A renderer processes four pages at a time, from different hosts if possible.
    renderer_batch_size: int = number(5, 1, 10, "messages per renderer batch")

    @property
    def renders(self) -> bool:
        return self.rendering == "yes"

    def check_rendering(self, settings: Settings, *, local: bool) -> None:
        """Raise ConfigError if settings would kill or cut off a renderer, or need one."""
        if not self.renders:
            for one in fields(RenderingKeys):
                given = getattr(self, one.name)
                usual = one.metadata.get("local") if local else None
                if one.name.startswith("renderer_") and given not in (one.default, usual):
                    raise unfit(one.name, given, "add -c rendering=yes, or omit it")
            return
        if local and find_browser() is None:
            raise unfit("rendering", self.rendering, INSTALL)
        least_s = settings.fetch_total_s + RenderLimits().page_s_max + settings.apply_reserve_s
        if least_s > self.renderer_timeout_s:
            fix = f"set at least {least_s:.0f}: {settings.fetch_total_s:.0f} of fetch_total_s +"
            fix += f" {RenderLimits().page_s_max:.0f} for a page +"
            fix += f" {settings.apply_reserve_s:.0f} of apply_reserve_s must fit into it"
            raise unfit("renderer_timeout_s", self.renderer_timeout_s, fix)
        if (why := unfit_renderer_memory(self.renderer_memory_mb, settings)) is not None:
            raise unfit("renderer_memory_mb", self.renderer_memory_mb, why)
