"""Read-only checks of the tables and the bucket."""

from __future__ import annotations

from typing import Any

from localstack.doctor.ground import Check, Finding, Ground, expect, judged, number, word
from localstack.doctor.queues import DEPLOY

TABLES = ("UrlsTable", "PagesTable", "HostsTable", "CrawlsTable", "PacksTable")
TTL = "expires_at"
ON_DEMAND = "PAY_PER_REQUEST"
UPLOAD_RULES = "AbortIncompleteMultipartUpload"
BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")


def described(ground: Ground) -> dict[str, dict[str, Any]]:
    """Return the tables' descriptions by output name."""
    client = ground.client("dynamodb")
    return {
        key: client.describe_table(TableName=name)["Table"]
        for key, name in ground.named(*TABLES).items()
    }


def billing(ground: Ground) -> Finding:
    found = {
        key: word(one.get("BillingModeSummary", {}).get("BillingMode"), ON_DEMAND, "PROVISIONED")
        for key, one in described(ground).items()
    }
    return judged(
        [f"{key} is not on demand" for key, mode in found.items() if mode != ON_DEMAND], **found
    )


def expiry(ground: Ground) -> Finding:
    """Check that tables delete expired items by the attribute that the code writes."""
    client = ground.client("dynamodb")
    found: dict[str, Any] = {}
    for key, name in ground.named(*TABLES).items():
        one = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        on = one.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
        found[key] = on and one.get("AttributeName") == TTL
    return judged([f"nothing in {key} expires" for key, on in found.items() if not on], **found)


def restore(ground: Ground) -> Finding:
    """Check that tables that outlive the stack can be restored, unless the stack is frugal."""
    wanted = ground.config.kept and not ground.config.is_frugal
    client = ground.client("dynamodb")
    found = {}
    for key, name in ground.named(*TABLES).items():
        one = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        status = one.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        found[key] = status == "ENABLED"
    wrong = [f"{key} is not as configured" for key, on in found.items() if on != wanted]
    return judged(wrong, wanted=wanted, **found)


def protection(ground: Ground) -> Finding:
    wanted = ground.config.kept
    found = {
        key: bool(one.get("DeletionProtectionEnabled")) for key, one in described(ground).items()
    }
    wrong = [f"{key} is not as configured" for key, on in found.items() if on != wanted]
    return judged(wrong, wanted=wanted, **found)


def access(ground: Ground) -> Finding:
    client, bucket = ground.client("s3"), ground.outputs["Bucket"]
    block = client.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    rules = client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    by = {
        word(rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"], "AES256", "aws:kms")
        for rule in rules["Rules"]
    }
    blocked = sum(bool(block.get(name)) for name in BLOCKS)
    problems = [] if blocked == len(BLOCKS) else ["it may be made public"]
    problems += [] if by <= {"AES256", "aws:kms"} and by else ["it is not encrypted"]
    return judged(problems, blocked=blocked, encrypted_by=sorted(by))


def lifecycle(ground: Ground) -> Finding:
    """Check that the bucket deletes objects by age, and incomplete uploads after one day."""
    from infra.retention import UPLOAD_D, kept_d

    rules = ground.client("s3").get_bucket_lifecycle_configuration(Bucket=ground.outputs["Bucket"])[
        "Rules"
    ]
    uploads = [
        number(rule[UPLOAD_RULES].get("DaysAfterInitiation", -1))
        for rule in rules
        if UPLOAD_RULES in rule
    ]
    wanted = 1 + len(kept_d(ground.config))  # the last one is the rule for incomplete uploads
    problems = [] if uploads == [UPLOAD_D] else ["unfinished uploads are kept"]
    problems += [] if len(rules) == wanted else ["it has other rules"]
    on = sum(rule.get("Status") == "Enabled" for rule in rules)
    problems += [] if on == len(rules) else ["some rules are off"]
    return judged(problems, rules=len(rules), enabled=on, uploads_d=uploads)


def kms(ground: Ground) -> Finding:
    """Check that the stack's own key lets EventBridge use it without a condition on the source."""
    from localstack.doctor.ground import skipped

    keys = ground.of_kind("AWS::KMS::Key")
    if not keys:
        return skipped("the stack has no key of its own (kms_key=generate)")
    policies = [
        ground.client("kms").get_key_policy(KeyId=key.name, PolicyName="default")["Policy"]
        for key in keys
    ]
    conditioned = sum(_conditioned(policy) for policy in policies)
    return expect(not conditioned, "EventBridge is let in under a condition only", keys=len(keys))


def _conditioned(policy: str) -> bool:
    import json

    return any(
        "events.amazonaws.com" in json.dumps(statement.get("Principal"))
        and "aws:SourceAccount" in json.dumps(statement.get("Condition", {}))
        for statement in json.loads(policy)["Statement"]
    )


CHECKS = (
    Check(
        id="tables.billing",
        title="tables are on demand",
        run=billing,
        assumptions=("A41",),
        do=DEPLOY,
    ),
    Check(
        id="tables.expiry",
        title="tables forget by expires_at",
        run=expiry,
        assumptions=("A35",),
        do=DEPLOY,
    ),
    Check(
        id="tables.restore",
        title="tables can be restored where they stay",
        run=restore,
        do=DEPLOY,
    ),
    Check(
        id="tables.protection",
        title="tables that stay are protected against deletion",
        run=protection,
        assumptions=("A44",),
        do=DEPLOY,
    ),
    Check(
        id="bucket.access",
        title="the bucket is private and encrypted",
        run=access,
        do=DEPLOY,
    ),
    Check(
        id="bucket.lifecycle",
        title="the bucket forgets",
        run=lifecycle,
        assumptions=("A49",),
        do=DEPLOY,
        not_on_emulator="its CloudFormation passes over the rules of a bucket",
    ),
    Check(
        id="key.policy",
        title="the stack's key lets EventBridge in",
        run=kms,
        assumptions=("A55",),
        do=DEPLOY,
    ),
)
