"""The renderer: the worker's program with a browser, for packs (batches of URLs) that need one.

It exists only with `rendering=yes`, consumes the render queue, and runs on x86_64, like the
browser. It fetches a page and runs its scripts in the same invocation, so its role equals the
worker's except for the consumed queues. It starts no page that it could not finish before its
timeout.

Source: aws.amazon.com/lambda/pricing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct

from infra.browser import PLACE
from infra.program import Needs, Program, Site, feed
from infra.rendering_keys import STORAGE_MB
from infra.worker import LOOPS, USES, accept_crawling, batches_of, crawling, settings_of
from orbweaver.model.settings import INSTALLED, Settings
from orbweaver.rendering.task import RenderLimits

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config

HANDLER = "renderer"


class Renderer(Construct):
    """The function that renders pages, and its event source."""

    def __init__(self, scope: Construct, construct_id: str, site: Site, queue: sqs.Queue) -> None:
        super().__init__(scope, construct_id)
        config = site.config
        needs = Needs(
            handler=HANDLER,
            memory_mb=config.renderer_memory_mb,
            timeout_s=config.renderer_timeout_s,
            storage_mb=None if config.local else STORAGE_MB,
            uses=USES,
            settings=settings_of(config) | _settings(config),
            permissions=crawling(self, site, (queue,)),
            recursive_loop=LOOPS[config.recursive_loop],
            renders=True,
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        at_once, size = config.renderer_concurrency_max, config.renderer_batch_size
        batches = batches_of(config, at_once=at_once, size=size)
        self.source = feed(self, "Render", program, queue, batches)
        accept_crawling(program, site.storage)


def _settings(config: Config) -> dict[str, str]:
    settings = Settings.from_environment(config.environment())
    reserve_s = settings.apply_reserve_s + RenderLimits().page_s_max
    return {
        "BROWSER": INSTALLED if config.local else PLACE,
        "APPLY_RESERVE_S": f"{reserve_s:g}",
    }
