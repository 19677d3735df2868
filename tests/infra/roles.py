"""Functions by their names in the template, and each one's complete permissions."""

from __future__ import annotations

KIND = "AWS::Lambda::Function"
PROTECTION, PROTECTION_ROLE = "ProtectionFunction", "ProtectionRole"
WORKER, EXPORTER, API, STARTER, NOTIFIER = (
    f"{part}ProgramFunction" for part in ("Worker", "Exporter", "Api", "Starter", "Notifier")
)
HERE = "arn:<AWS::Partition>"
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
# Complete permissions of each role. Each line exists because an adapter makes that call.
ALLOWED = {
    "WorkerProgramRole": {
        "<FrontierCrawl.Arn>": {
            "sqs:ReceiveMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:SendMessage",
        },
        "<FrontierSeeds.Arn>": {
            "sqs:ReceiveMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
        },
        "<FrontierExpress.Arn>": {
            "sqs:ReceiveMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:SendMessage",
        },
        "<FrontierDeadLetters.Arn>": {"sqs:SendMessage"},
        "<StorageUrls.Arn>": {
            "dynamodb:BatchGetItem",
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        },
        "<StoragePages.Arn>": {"dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"},
        "<StorageHosts.Arn>": {
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "<StorageCrawls.Arn>": {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
        },
        "<StoragePacks.Arn>": {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:ConditionCheckItem",
        },
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
        "<ExporterOrders.Arn>": {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:SendMessage",
        },
        f"{HERE}:events:<AWS::Region>:<AWS::AccountId>:event-bus/default": {"events:PutEvents"},
        **{
            f"{HERE}:glue:<AWS::Region>:<AWS::AccountId>:{part}": {
                "glue:GetTable",
                "glue:CreateTable",
                "glue:UpdateTable",
            }
            for part in ("catalog", "database/orbweaver", "table/orbweaver/items_*")
        },
        "<ExporterFailures.Arn>": {"sqs:SendMessage"},
        "<ExporterProgramLogs.Arn>": LOGS,
    },
    "ApiProgramRole": {
        "<FrontierCrawl.Arn>": {"sqs:SendMessage"},
        "<FrontierExpress.Arn>": {"sqs:SendMessage"},
        "<StorageCrawls.Arn>": {
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Scan",
            "dynamodb:UpdateItem",
        },
        "<StoragePacks.Arn>": {
            "dynamodb:BatchGetItem",
            "dynamodb:BatchWriteItem",
            "dynamodb:Query",
        },
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
        "<ExporterFailures.Arn>": {"sqs:SendMessage"},
    },
    "StarterProgramRole": {
        "<FrontierCrawl.Arn>": {"sqs:SendMessage"},
        "<FrontierExpress.Arn>": {"sqs:SendMessage"},
        "<StorageCrawls.Arn>": {
            "dynamodb:Scan",
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
        },
        "<FailedCallsQueue.Arn>": {"sqs:SendMessage"},
        "<StarterProgramLogs.Arn>": LOGS,
    },
    "StarterFiringRole": {
        "<StarterProgramFunction.Arn>": {"lambda:InvokeFunction"},
        "<FailedCallsQueue.Arn>": {"sqs:SendMessage"},
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
    "<FrontierCrawl.Arn>": {"sqs:SendMessage"} | COUNTED,
    "<FrontierExpress.Arn>": {"sqs:SendMessage"} | COUNTED,
    "<FrontierSeeds.Arn>": COUNTED,
    "<FrontierDeadLetters.Arn>": {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"} | COUNTED,
    "<ConsoleProgramLogs.Arn>": LOGS,
}
# With signed webhooks.
NOTIFYING = {
    "<StorageCrawls.Arn>": {"dynamodb:GetItem", "dynamodb:BatchGetItem"},
    "<NotifierSecret.Id>": {"secretsmanager:GetSecretValue"},
    "<FailedCallsQueue.Arn>": {"sqs:SendMessage"},
    "<NotifierProgramLogs.Arn>": LOGS,
}
# With deliveries, and the additional permissions to copy to another bucket.
DELIVERING = {
    "<DeliveryQueue.Arn>": {
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility",
        "sqs:SendMessage",
    },
    "<DeliveryDeadLetters.Arn>": {"sqs:SendMessage"},
    "<StorageBucket.Arn>/exports/*": {"s3:GetObject"},
    "<StorageBucket.Arn>": {"s3:ListBucket"},
    "<DeliveryProgramLogs.Arn>": LOGS,
}
THERE = f"{HERE}:s3:::their-exports"
COPYING = {
    f"{THERE}/exports/*": {"s3:GetObject", "s3:PutObject", "s3:PutObjectAcl", "s3:DeleteObject"},
    THERE: {"s3:ListBucket"},
}
