"""All applications by name."""

from __future__ import annotations

from bench.yields import machina, mediawiki, repositories, static

ALL = {
    application.name: application
    for application in (
        mediawiki.APPLICATION,
        repositories.CGIT,
        static.INDEX,
        static.INDEX_SMALL,
        repositories.GITWEB,
        machina.APPLICATION,
        static.SPHINX,
    )
}
