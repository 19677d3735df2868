"""Functions by their names in the template, and each one's complete permissions."""

from __future__ import annotations

KIND = "AWS::Lambda::Function"
PROTECTION, PROTECTION_ROLE = "ProtectionFunction", "ProtectionRole"
WORKER, EXPORTER, API, STARTER, NOTIFIER = (
    f"{part}ProgramFunction" for part in ("Worker", "Exporter", "Api", "Starter", "Notifier")
)
HERE = "arn:<AWS::Partition>"
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}


def may(service: str, actions: str) -> set[str]:
    return {f"{service}:{action}" for action in actions.split()}


# Messages: send them, let Lambda poll them, and also return failed ones early.
SENDS = {"sqs:SendMessage"}
POLLS = may("sqs", "ReceiveMessage DeleteMessage GetQueueAttributes")
WORKS = POLLS | {"sqs:ChangeMessageVisibility"}
WRITES = may("dynamodb", "BatchGetItem PartiQLInsert PutItem UpdateItem DeleteItem")
# Complete permissions of each role. Each line exists because an adapter makes that call.
ALLOWED = {
    "WorkerProgramRole": {
        "<FrontierCrawl.Arn>": WORKS | SENDS,
        "<FrontierSeeds.Arn>": WORKS,
        "<FrontierExpress.Arn>": WORKS | SENDS,
        "<FrontierDeadLetters.Arn>": SENDS,
        "<StorageUrls.Arn>": WRITES,
        "<StoragePages.Arn>": {"dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"},
        "<StorageHosts.Arn>": may("dynamodb", "BatchGetItem PutItem UpdateItem"),
        "<StorageCrawls.Arn>": may(
            "dynamodb", "GetItem BatchGetItem PutItem UpdateItem ConditionCheckItem"
        ),
        "<StoragePacks.Arn>": WRITES | may("dynamodb", "GetItem Query"),
        f"{HERE}:events:<AWS::Region>:<AWS::AccountId>:event-bus/default": {"events:PutEvents"},
        "<StorageBucket.Arn>/bodies/*": {"s3:PutObject"},
        "<StorageBucket.Arn>/claimed/*": {"s3:GetObject", "s3:PutObject"},
        f"{HERE}:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:Orbweaver/logins/*": {
            "secretsmanager:GetSecretValue"
        },
        f"{HERE}:ssm:<AWS::Region>:<AWS::AccountId>:parameter/Orbweaver/logins/*": {
            "ssm:GetParameter"
        },
        "<WorkerProgramLogs.Arn>": LOGS,
    },
    "ExporterProgramRole": {
        "<StoragePages.Arn>": {"dynamodb:Query"},
        "<StorageCrawls.Arn>": {"dynamodb:GetItem", "dynamodb:Scan"},
        "<StorageBucket.Arn>/exports/*": {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"},
        "<StorageBucket.Arn>/bodies/*": {"s3:GetObject"},
        "<StorageBucket.Arn>": {"s3:ListBucket"},
        "<ExporterOrders.Arn>": POLLS | SENDS,
        f"{HERE}:events:<AWS::Region>:<AWS::AccountId>:event-bus/default": {"events:PutEvents"},
        **{
            f"{HERE}:glue:<AWS::Region>:<AWS::AccountId>:{part}": may(
                "glue", "GetTable CreateTable UpdateTable"
            )
            for part in ("catalog", "database/orbweaver", "table/orbweaver/items_*")
        },
        "<ExporterFailures.Arn>": SENDS,
        "<ExporterProgramLogs.Arn>": LOGS,
    },
    "ApiProgramRole": {
        "<FrontierCrawl.Arn>": SENDS,
        "<FrontierExpress.Arn>": SENDS,
        "<StorageCrawls.Arn>": may("dynamodb", "BatchGetItem GetItem PutItem Scan UpdateItem"),
        "<StoragePacks.Arn>": may("dynamodb", "BatchGetItem BatchWriteItem Query"),
        "<StoragePages.Arn>": {"dynamodb:BatchGetItem", "dynamodb:Query"},
        "<StorageUrls.Arn>": {"dynamodb:BatchGetItem"},
        "<StorageHosts.Arn>": {"dynamodb:BatchGetItem"},
        "<StorageBucket.Arn>": {"s3:ListBucket"},
        "<StorageBucket.Arn>/seeds/*": {"s3:GetObject"},
        "<StorageBucket.Arn>/bodies/*": {"s3:GetObject"},
        "<StorageBucket.Arn>/exports/*": {"s3:GetObject"},
        "<ApiProgramLogs.Arn>": LOGS,
    },
    "ExporterScheduleRole": {
        "<ExporterProgramFunction.Arn>": {"lambda:InvokeFunction"},
        "<ExporterFailures.Arn>": SENDS,
    },
    "StarterProgramRole": {
        "<FrontierCrawl.Arn>": SENDS,
        "<FrontierExpress.Arn>": SENDS,
        "<StorageCrawls.Arn>": may("dynamodb", "Scan GetItem BatchGetItem PutItem"),
        "<FailedCallsQueue.Arn>": SENDS,
        "<StarterProgramLogs.Arn>": LOGS,
    },
    "StarterFiringRole": {
        "<StarterProgramFunction.Arn>": {"lambda:InvokeFunction"},
        "<FailedCallsQueue.Arn>": SENDS,
    },
}
# With a hosted console: the API's permissions, and counting messages.
COUNTED = {"sqs:GetQueueAttributes"}
HOSTING = {
    **{
        name: set(actions)
        for name, actions in ALLOWED["ApiProgramRole"].items()
        if "Api" not in name
    },
    "<FrontierCrawl.Arn>": SENDS | COUNTED,
    "<FrontierExpress.Arn>": SENDS | COUNTED,
    "<FrontierSeeds.Arn>": COUNTED,
    "<FrontierDeadLetters.Arn>": {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"} | COUNTED,
    "<ConsoleProgramLogs.Arn>": LOGS,
}
# With signed webhooks.
NOTIFYING = {
    "<StorageCrawls.Arn>": {"dynamodb:GetItem", "dynamodb:BatchGetItem"},
    "<NotifierSecret.Id>": {"secretsmanager:GetSecretValue"},
    "<FailedCallsQueue.Arn>": SENDS,
    "<NotifierProgramLogs.Arn>": LOGS,
}
# With deliveries, and the additional permissions to copy to another bucket.
DELIVERING = {
    "<DeliveryQueue.Arn>": WORKS | SENDS,
    "<DeliveryDeadLetters.Arn>": SENDS,
    "<StorageBucket.Arn>/exports/*": {"s3:GetObject"},
    "<StorageBucket.Arn>": {"s3:ListBucket"},
    "<DeliveryProgramLogs.Arn>": LOGS,
}
THERE = f"{HERE}:s3:::their-exports"
COPYING = {
    f"{THERE}/exports/*": {"s3:GetObject", "s3:PutObject", "s3:PutObjectAcl", "s3:DeleteObject"},
    THERE: {"s3:ListBucket"},
}
