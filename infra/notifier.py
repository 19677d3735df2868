"""The notifier: tells a crawl's webhook that it has ended.

Rules
- It is there where a key is, `webhook_secret`: nothing is posted that is not signed. A key of the
  stack's own (`generate`) costs $0.40 a month, idle or not, so there is none by default.
- The rule on the bus lets completed crawls of this stack through that name a webhook, and no
  others: stacks share the bus.
- It is outside of the crawl: whatever becomes of a webhook, no crawl ends otherwise or later.

Source: docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.failures import EVENT_S_MAX, retry
from infra.findings import accept
from infra.program import Needs, Program, Site, allow, secret_arn

if TYPE_CHECKING:
    from infra.config import Config
    from infra.failures import FailedCalls

HANDLER = "notifier"
MEMORY_MB = 512
TIMEOUT_S = 30  # a webhook has 10 of them
GENERATE = "generate"
KEY_CHARS = 64
SOURCE, COMPLETED = "orbweaver", "CrawlCompleted"


class Notifier(Construct):
    """The function that posts, its key, and the rule that invokes it."""

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
        """Have the function invoked when a crawl that names a webhook has ended."""
        events.Rule(
            self,
            "Rule",
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
        """Make a key, which goes with the stack; its ARN."""
        made = secretsmanager.CfnSecret(
            self,
            "Secret",
            description="Signs the webhooks of crawls; receivers verify with it",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=KEY_CHARS, exclude_punctuation=True
            ),
        )
        made.apply_removal_policy(RemovalPolicy.DESTROY)
        accept(
            made,
            "AwsSolutions-SMG4",
            "Receivers hold the same key, so whoever changes it has to tell them; the notifier"
            " reads it anew every time.",
        )
        return made.attr_id
