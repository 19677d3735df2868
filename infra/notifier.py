"""The notifier: calls a crawl's webhook when the crawl has ended.

It exists only with `webhook_secret`, the key that signs every request. It is off by default,
because a key that the stack creates (`generate`) costs $0.40 a month, even if unused. A failing
webhook does not change or delay the end of a crawl.

Source: docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.findings import accept
from infra.frontier import EVENT_S_MAX, retry
from infra.program import Needs, Program, Site, allow, secret_arn
from orbweaver.model.events import COMPLETED, SOURCE

if TYPE_CHECKING:
    from infra.config import Config
    from infra.frontier import FailedCalls

HANDLER = "notifier"
MEMORY_MB = 512
TIMEOUT_S = 30  # a webhook's request times out after 10 s
GENERATE = "generate"
KEY_CHARS = 64


class Notifier(Construct):
    """The function that calls webhooks, its signing key, and the rule that invokes the function."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config, failed_calls = site.config, site.failed_calls
        self.secret = config.webhook_secret
        arn = self._generated() if self.secret == GENERATE else secret_arn(self, self.secret)
        if self.secret == GENERATE:
            self.secret = arn
        crawls = site.storage.crawls.table_arn
        needs = Needs(
            handler=HANDLER,
            memory_mb=MEMORY_MB,
            timeout_s=TIMEOUT_S,
            uses=("CRAWLS_TABLE",),
            settings={
                "DEAD_LETTER_QUEUE_URL": failed_calls.queue.queue_url,
                "WEBHOOK_SECRET": self.secret,
            },
            permissions=[
                allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], crawls),
                allow(["secretsmanager:GetSecretValue"], arn),
                allow(["sqs:SendMessage"], failed_calls.queue.queue_arn),
            ],
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        retry(self, self.function, failed_calls.queue)
        self._listen(config, failed_calls)

    def _listen(self, config: Config, failed_calls: FailedCalls) -> None:
        """Invoke the function when a crawl of this stack ends that has a webhook."""
        events.Rule(
            self,
            "Rule",
            # The pattern contains the stack's name, because all stacks of an account share the
            # event bus.
            event_pattern=events.EventPattern(
                source=[SOURCE],
                detail_type=[COMPLETED],
                detail={"stack": [config.stack_name], "webhook": [True]},
            ),
            targets=[
                targets.LambdaFunction(
                    self.function,
                    dead_letter_queue=failed_calls.queue,
                    max_event_age=Duration.seconds(EVENT_S_MAX),
                )
            ],
        )

    def _generated(self) -> str:
        """Create a signing key that is removed with the stack. Return its ARN."""
        made = secretsmanager.CfnSecret(
            self,
            "Secret",
            description="Key that signs webhooks of crawls; receivers verify with it",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=KEY_CHARS, exclude_punctuation=True
            ),
        )
        made.apply_removal_policy(RemovalPolicy.DESTROY)
        accept(
            made,
            "AwsSolutions-SMG4",
            "Receivers have the same key, so a rotation must be agreed with them; the notifier"
            " reads the key for each webhook.",
        )
        return made.attr_id
