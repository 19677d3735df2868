"""A definition with every key, and a helper that lists the problems of a document."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.control.definition import DefinitionError, parse

SEED = "https://example.com/"
DOCUMENT: dict[str, Any] = {
    "name": "site",
    "seeds": [SEED],
    "sitemaps": [f"{SEED}s.xml"],
    "priority": "high",
    "scope": {"links": "prefix", "include": ["/a"], "exclude": ["/b"], "robots_sitemaps": False},
    "limits": {
        "depth": 3,
        "pages": 100,
        "stop_when_nothing_new": True,
        "host_pages": 50,
        "duration": "2h",
        "bytes": "10GB",
        "dollars": 0.25,
    },
    "politeness": {"delay": "250ms", "concurrency": 2, "robots": False, "nofollow": False},
    "identity": {
        "user_agents": ["a/1"],
        "headers": {"X-Key": "k"},
        "cookies": True,
        "hosts": {"example.org": {"headers": {"X-Key": "s"}}},
        "proxies": False,
    },
    "network": {
        "ca_bundle": "/ca.pem",
        "client_cert": "/me.pem:/me.key",
        "insecure": ["a.example.org"],
        "timeout": "30s",
        "retries": 2,
        "referer": "page",
        "hosts": {"example.org": {"timeout": "60s", "retries": 0, "referer": "off"}},
    },
    "dedup": {"window": 0, "strip_parameters": ["ref"], "keep_parameters": True},
    "records": {
        "canonical": True,
        "status_only": True,
        "noindex": "skip",
        "bodies": "all",
        "text": True,
        "links": True,
        "redact": ["email", "phone"],
    },
    "render": {"mode": "auto", "rules": [{"match": "/c", "mode": "always"}]},
    "schedule": {"cron": "0 3 * * ? *", "timezone": "Europe/Berlin", "overlap": "allow"},
    "notify": {"webhook": f"{SEED}hook"},
    "auth": {
        "example.org": {"bearer": "env:TOKEN"},
        "https://wiki.example.org": {
            "login": {
                "url": "/login",
                "form": "#login",
                "fields": {"user": "me", "password": "secret:wiki"},
                "check": {"url": "/me", "status": 200, "selector": "a.out", "text": "Hello"},
                "lost": {"selector": "#login", "url": "/login", "status": 404, "without": "a.out"},
                "logout": "/bye",
                "origins": ["https://sso.example.net"],
            }
        },
    },
    "api": [
        {"url": f"{SEED}v1", "links": "$.u[*]", "pages": 5, "paging": {"by": "link"}},
        {
            "url": f"{SEED}v2",
            "paging": {
                "by": "offset",
                "parameter": "from",
                "start": 1,
                "step": 10,
                "total": "$.n",
                "more": "$.more",
            },
        },
        {"url": f"{SEED}v4", "method": "POST", "json": {"q": ["a b"]}},
        {"url": f"{SEED}v5", "method": "POST", "form": {"q": "a b"}},
        {"url": f"{SEED}v6", "method": "POST"},
        {"url": f"{SEED}v3", "paging": {"by": "cursor", "path": "$.c", "parameter": "c"}},
    ],
    "rules": [
        {
            "match": "/a",
            "depth": 2,
            "priority": "high",
            "delay": "1.5s",
            "window": "1h",
            "follow": False,
            "record": False,
        },
        {"match": "/b", "priority": "normal", "follow": True, "record": True},
    ],
    "items": [{"name": "books", "match": "/b/", "fields": {"title": "h1"}}],
}


def problems(document: object, lines: str | None = None) -> dict[str, str]:
    with pytest.raises(DefinitionError) as caught:
        parse(document, lines)
    return {problem.path: problem.text for problem in caught.value.problems}
