"""A substitute for the gateway and the sign-in pages in front of the hosted console.

It verifies tokens with its own key (RS256: signature, issuer, times, audience), forwards requests
in payload format 2.0 by the routes of the stack, and exchanges codes for tokens with PKCE.
Forwarded claims are texts, as in API Gateway (docs/aws-assumptions.md, A77 to A82).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from orbweaver.console.users import OPEN_ROUTES, SIGNED_IN_ROUTES, SignIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Answer = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
CLIENT, HOUR_S = "the-console", 3_600
UNAUTHORIZED = '{"message":"Unauthorized"}'


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(claims: Mapping[str, Any], key: rsa.RSAPrivateKey, algorithm: str = "RS256") -> str:
    head = {"alg": algorithm, "kid": "test", "typ": "JWT"}
    body = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    return f"{body}.{encoded(key.sign(body.encode(), padding.PKCS1v15(), SHA256()))}"


def as_text(claim: Any) -> str:
    """Return a claim as the gateway forwards it: a list as its members between brackets."""
    return f"[{' '.join(map(str, claim))}]" if isinstance(claim, list) else str(claim)


@dataclass
class FrontDoor:
    """The gateway and the pages; `users` are names with their groups."""

    users: Mapping[str, list[str]]
    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    url: str = ""
    pages: str = ""
    # Lifetime of tokens.
    token_s: int = HOUR_S
    # Forwarded and refused requests.
    passed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _codes: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    @property
    def sign_in(self) -> SignIn:
        return SignIn(issuer=f"{self.pages}/pool", client=CLIENT, pages=self.pages)

    def claims(self, name: str, **other: Any) -> dict[str, Any]:
        now_s = int(time.time())
        return {
            "iss": self.sign_in.issuer,
            "client_id": CLIENT,
            "token_use": "access",
            "scope": "openid",
            "sub": f"sub-of-{name}",
            "username": name,
            "cognito:groups": self.users[name],
            "iat": now_s,
            "exp": now_s + self.token_s,
            **other,
        }

    def verified(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a valid token, else None."""
        try:
            head, body, signature = token.split(".")
            if json.loads(decoded(head)).get("alg") != "RS256":
                return None
            public = self.key.public_key()
            raw = f"{head}.{body}".encode()
            public.verify(decoded(signature), raw, padding.PKCS1v15(), SHA256())
            claims: dict[str, Any] = json.loads(decoded(body))
        except (ValueError, binascii.Error, InvalidSignature):
            return None
        audience = claims.get("aud", claims.get("client_id"))
        fits = claims.get("iss") == self.sign_in.issuer and CLIENT in (audience, *_listed(audience))
        return claims if fits and claims.get("exp", 0) > time.time() else None

    async def handed_on(self, request: web.Request, answer: Answer) -> web.Response:
        """Forward a request and return the function's answer, like an HTTP API."""
        key = _route_of(request.method, request.path)
        if key is None:
            return web.Response(status=404, text='{"message":"Not Found"}')
        context: dict[str, Any] = {
            "requestId": secrets.token_hex(8),
            "http": {"method": request.method, "path": request.path},
        }
        if key in SIGNED_IN_ROUTES:
            claims = self.verified(request.headers.get("Authorization", "").removeprefix("Bearer "))
            if claims is None:
                self.refused.append(f"{request.method} {request.path}")
                return web.Response(status=401, text=UNAUTHORIZED, content_type="application/json")
            texts = {name: as_text(claim) for name, claim in claims.items()}
            context["authorizer"] = {"jwt": {"claims": texts, "scopes": None}}
        self.passed.append(f"{request.method} {request.path}")
        event = {
            "version": "2.0",
            "routeKey": key,
            "rawPath": request.path,
            "rawQueryString": request.url.raw_query_string,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "requestContext": context,
            "body": await request.text() or None,
            "isBase64Encoded": False,
        }
        reply = json.loads(json.dumps(await answer(event)))
        return web.Response(
            status=reply["statusCode"], headers=reply["headers"], body=reply["body"].encode()
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        """Return a page with a link for each user in place of a login form."""
        asked = request.query
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert (asked["client_id"], asked["redirect_uri"]) == (CLIENT, f"{self.url}/")
        links = []
        for name in self.users:
            code = secrets.token_hex(8)
            self._codes[code] = (name, asked["code_challenge"], asked["redirect_uri"])
            back = urlencode({"code": code, "state": asked["state"]})
            links.append(f'<a href="{self.url}/?{back.replace("&", "&amp;")}">{name}</a>')
        nobody = urlencode({"error": "access_denied", "state": asked["state"]})
        links.append(f'<a href="{self.url}/?{nobody.replace("&", "&amp;")}">Nobody</a>')
        # Otherwise a browser may request an icon and log an error.
        icon = '<link rel="icon" href="data:,">'
        page = f"<!doctype html><title>Sign in</title>{icon}{' '.join(links)}"
        return web.Response(text=page, content_type="text/html")

    async def _token(self, request: web.Request) -> web.Response:
        """Exchange a code for a token once, if the verifier matches."""
        given = await request.post()
        any_origin = {"Access-Control-Allow-Origin": "*"}
        name, challenge, redirect = self._codes.pop(str(given.get("code")), ("", "", ""))
        digest = hashlib.sha256(str(given.get("code_verifier")).encode()).digest()
        fits = (
            name
            and encoded(digest) == challenge
            and given.get("redirect_uri") == redirect
            and given.get("client_id") == CLIENT
            and given.get("grant_type") == "authorization_code"
        )
        if not fits:
            error = {"error": "invalid_grant"}
            return web.json_response(error, status=400, headers=any_origin)
        found = {
            "access_token": signed(self.claims(name), self.key),
            "id_token": signed(self.claims(name, token_use="id", aud=CLIENT), self.key),
            "refresh_token": secrets.token_hex(),
            "expires_in": self.token_s,
            "token_type": "Bearer",
        }
        return web.json_response(found, headers=any_origin)

    async def _logout(self, request: web.Request) -> web.Response:
        assert request.query["client_id"] == CLIENT
        assert request.query["logout_uri"] == f"{self.url}/"
        raise web.HTTPFound(request.query["logout_uri"])

    def pages_app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/oauth2/authorize", self._authorize)
        app.router.add_post("/oauth2/token", self._token)
        app.router.add_get("/logout", self._logout)
        return app


def _listed(claim: Any) -> list[Any]:
    return claim if isinstance(claim, list) else []


def _route_of(method: str, path: str) -> str | None:
    for key in (*OPEN_ROUTES, *SIGNED_IN_ROUTES):
        verb, _, spelled = key.partition(" ")
        pattern = re.escape(spelled).replace(r"\{proxy\+\}", ".+").replace(r"\{file\}", "[^/]+")
        if verb == method and re.fullmatch(pattern, path):
            return key
    return None


@asynccontextmanager
async def standing(
    users: Mapping[str, list[str]], made: Callable[[SignIn], Answer]
) -> AsyncIterator[FrontDoor]:
    """Run gateway and pages on free ports; `made` makes the function behind them."""
    door = FrontDoor(users=users)
    answers: list[Answer] = []

    async def handed_on(request: web.Request) -> web.Response:
        return await door.handed_on(request, answers[0])

    gateway = web.Application()
    gateway.router.add_route("*", "/{path:.*}", handed_on)
    async with AsyncExitStack() as runners:
        ports = []
        for app in (gateway, door.pages_app()):
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            runners.push_async_callback(runner.cleanup)
            place = web.TCPSite(runner, "127.0.0.1", 0)
            await place.start()
            ports.append(runner.addresses[0][1])
        # Two host names of this machine, so that the pages are another site.
        door.url, door.pages = f"http://127.0.0.1:{ports[0]}", f"http://localhost:{ports[1]}"
        answers.append(made(door.sign_in))
        yield door
