"""Reads a synthesized stack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from infra.stack import OrbweaverStack

# Suffix that CDK appends to a construct's path in a template name.
HASH = re.compile(r"[0-9A-F]{8}(?=$|\.)")
# Resource types that cost money while idle: docs/cost.md.
BILLED_IDLE = (
    *("AWS::WAFv2::", "AWS::KMS::", "AWS::CloudWatch::Alarm", "AWS::SecretsManager::"),
    "AWS::EC2::",
)
# Context of a receiver of exports.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
SFTP = {
    "sftp_url": "sftp://crawler@files.example.org/~/in/box",
    "sftp_host_key": f"files.example.org {KEY}",
    "sftp_secret": "crawl/sftp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesized:
    """A stack and its template."""

    stack: OrbweaverStack
    template: Mapping[str, Any]

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the resources of a type: name without hash to resource."""
        return {
            HASH.sub("", name): resource
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def properties(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of a type's resources, by name without hash."""
        found = self.resources(kind).items()
        return {name: resource.get("Properties", {}) for name, resource in found}

    def functions(self) -> dict[str, dict[str, Any]]:
        """Return the functions that run the product's code asset, without the custom resource's."""
        found = self.properties("AWS::Lambda::Function").items()
        return {name: one for name, one in found if one["Handler"].startswith("handlers.")}

    def only(self, kind: str) -> dict[str, Any]:
        (found,) = self.properties(kind).values()
        return found

    def allowed(self, role: str) -> dict[str, set[str]]:
        """Return a role's permissions: resource to actions. Every statement must be an Allow."""
        found = self.properties("AWS::IAM::Role")[role]
        assert "ManagedPolicyArns" not in found, f"{role} has a managed policy"
        allowed: dict[str, set[str]] = {}
        for policy in found["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Allow"
                assert "Condition" not in statement
                for resource in listed(statement["Resource"]):
                    allowed.setdefault(text(resource), set()).update(listed(statement["Action"]))
        return allowed


# Synthesizes a stack for a context, given as keywords.
Synthesize: TypeAlias = "Callable[..., Synthesized]"


def listed(value: Any) -> list[Any]:
    """Return a value as a list; a template can omit the list around a single one."""
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """Return a template value as text: a reference is `<Name>`, an attribute `<Name.Arn>`."""
    match value:
        case {"Ref": str(name)}:
            return f"<{HASH.sub('', name)}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{HASH.sub('', name)}.{attribute}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(text(part) for part in parts)
        case {"Fn::Sub": str(sentence)}:
            return sentence
        case _:
            return str(value)


def denies_plain_http(statements: Iterator[Mapping[str, Any]], action: str) -> bool:
    """True if an action is denied to everyone without TLS."""
    return any(
        statement["Effect"] == "Deny"
        and statement["Action"] == action
        and statement["Principal"] in ("*", {"AWS": "*"})
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in statements
    )
