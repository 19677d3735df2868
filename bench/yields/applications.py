"""All applications by their names."""

from __future__ import annotations

from bench.yields import autoindex, mediawiki, repositories

ALL = {
    application.name: application
    for application in (
        mediawiki.APPLICATION,
        repositories.CGIT,
        autoindex.APPLICATION,
        repositories.GITWEB_FOLLOWED,
        repositories.GITWEB_AS_PACKAGED,
    )
}
