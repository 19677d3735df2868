"""All parts of the stack.

Clients find resources by its outputs (`CrawlQueueUrl`, `PagesTable`, …).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import (
    Annotations,
    CfnOutput,
    DefaultStackSynthesizer,
    PermissionsBoundary,
    Stack,
)

from infra.api import Api
from infra.catalogue import Catalogue
from infra.console import HostedConsole
from infra.delivery import Delivery
from infra.encryption import Encryption
from infra.exporter import Exporter
from infra.frontier import FailedCalls, Frontier
from infra.monitoring import Monitoring
from infra.notifier import Notifier
from infra.program import Site
from infra.protection import Protection
from infra.schedules import Starter
from infra.storage import Storage
from infra.worker import Renderer, Worker

if TYPE_CHECKING:
    from constructs import Construct

    from infra.config import Config
    from infra.program import Code

DESCRIPTION = "Orbweaver, a serverless web crawler"


class OrbweaverStack(Stack):
    """One deployment of Orbweaver."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config, code: Code) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=config.stack_name,
            description=DESCRIPTION,
            synthesizer=DefaultStackSynthesizer(qualifier=config.qualifier or None),
            permissions_boundary=_boundary(config.permissions_boundary),
        )
        self.frontier = Frontier(self, "Frontier", config=config)
        self.storage = Storage(self, "Storage", config=config)
        self.failed_calls = FailedCalls(self, "FailedCalls", config=config)
        site = Site(
            config=config,
            code=code,
            frontier=self.frontier,
            storage=self.storage,
            failed_calls=self.failed_calls,
        )
        self.worker = Worker(self, "Worker", site)
        render = self.frontier.render
        self.renderer = None if render is None else Renderer(self, "Renderer", site, render)
        self.exporter = Exporter(self, "Exporter", site)
        self.api = Api(self, "Api", site)
        self.starter = Starter(self, "Starter", site)
        self.console = HostedConsole(self, "Console", site) if config.hosts_console else None
        self.notifier = Notifier(self, "Notifier", site) if config.webhook_secret else None
        self.delivery = Delivery(self, "Delivery", site) if config.has_receiver else None
        self.monitoring = Monitoring(self, "Monitoring", config=config)
        self.catalogue = Catalogue(self, "Catalogue", config=config, storage=self.storage)
        protection = (
            None
            if config.local
            else Protection(self, "Protection", config=config, storage=self.storage)
        )
        # This comes last, because it encrypts only resources that exist already.
        Encryption(self, "Encryption", config=config).apply()
        if protection is not None:
            protection.order_last()
        self._add_outputs(config)

    def _add_outputs(self, config: Config) -> None:
        """Add the outputs. Warns if requests will contain no contact for the owners of sites."""
        for key, value in self._outputs().items():
            CfnOutput(self, key, value=value)
        if not (config.local or config.contact):
            Annotations.of(self).add_warning_v2(
                "orbweaver:contact",
                "Site owners cannot reach you: deploy with -c contact=<URL or e-mail address>",
            )

    def _outputs(self) -> dict[str, str]:
        frontier, storage = self.frontier, self.storage
        names = {
            # All clients are allowed to send to this queue, because its messages are read only as
            # seeds.
            "CrawlQueueUrl": frontier.seeds.queue_url,
            "PackQueueUrl": frontier.crawl.queue_url,
            "ExpressQueueUrl": frontier.express.queue_url,
            "DeadLetterQueueUrl": frontier.dead_letters.queue_url,
            "UrlsTable": storage.urls.table_name,
            "PagesTable": storage.pages.table_name,
            "HostsTable": storage.hosts.table_name,
            "CrawlsTable": storage.crawls.table_name,
            "PacksTable": storage.packs.table_name,
            "Bucket": storage.bucket.bucket_name,
            "WorkerFunction": self.worker.function.function_name,
            "WorkerLogGroup": self.worker.logs.log_group_name,
            "CrawlEventSource": self.worker.crawl_source.event_source_mapping_id,
            "ExpressEventSource": self.worker.express_source.event_source_mapping_id,
            "SeedEventSource": self.worker.seed_source.event_source_mapping_id,
            "ExporterFunction": self.exporter.function.function_name,
            "ExporterFailuresQueueUrl": self.exporter.failures.queue_url,
            "ExportEventSource": self.exporter.source.event_source_mapping_id,
            "ExportQueueUrl": self.exporter.queue.queue_url,
            "ExportDeadLetterQueueUrl": self.exporter.dead_letters.queue_url,
            "StarterFunctionArn": self.starter.function.function_arn,
            "ScheduleGroup": self.starter.group.ref,
            "ScheduleRoleArn": self.starter.role.role_arn,
            "FailedCallsQueueUrl": self.failed_calls.queue.queue_url,
            "FailedCallsQueueArn": self.failed_calls.queue.queue_arn,
            "ApiUrl": self.api.rest.url,
            "AlarmTopicArn": self.monitoring.topic.topic_arn,
            "Database": self.catalogue.name,
            "Workgroup": self.catalogue.workgroup.name,
        }
        if self.notifier is not None:
            names |= {
                "WebhookSecret": self.notifier.secret,
            }
        if self.console is not None:
            names |= {
                "ConsoleUrl": self.console.url,
                "ConsoleUserPool": self.console.sign_in.pool.ref,
            }
        if self.renderer is not None and frontier.render is not None:
            names |= {
                "RenderQueueUrl": frontier.render.queue_url,
                "RenderEventSource": self.renderer.source.event_source_mapping_id,
                "RendererFunction": self.renderer.function.function_name,
                "RendererLogGroup": self.renderer.logs.log_group_name,
            }
        if self.delivery is not None:
            names |= {
                "DeliveryQueueUrl": self.delivery.queue.queue_url,
                "DeliveryDeadLetterQueueUrl": self.delivery.dead_letters.queue_url,
            }
        return names


def _boundary(policy: str) -> PermissionsBoundary | None:
    """Return the permissions boundary for all roles. `policy` is the name or ARN of a policy."""
    if not policy:
        return None
    named = policy.startswith("arn:")
    return PermissionsBoundary.from_arn(policy) if named else PermissionsBoundary.from_name(policy)
