"""All applications by name."""

from __future__ import annotations

from bench.yields import (
    autoindex,
    dokuwiki,
    forum,
    fossil,
    hgweb,
    machina,
    mediawiki,
    oscar,
    repositories,
    roundup,
    shop,
    static,
    trac,
    wordpress,
)

ALL = {
    application.name: application
    for application in (
        mediawiki.APPLICATION,
        repositories.CGIT,
        autoindex.APPLICATION,
        autoindex.APPLICATION_SMALL,
        repositories.GITWEB_FOLLOWED,
        repositories.GITWEB_AS_PACKAGED,
        hgweb.APPLICATION,
        fossil.APPLICATION,
        wordpress.APPLICATION,
        dokuwiki.APPLICATION,
        shop.APPLICATION,
        oscar.APPLICATION,
        forum.APPLICATION,
        machina.APPLICATION,
        roundup.APPLICATION,
        trac.APPLICATION,
        static.PELICAN_BLOG,
        static.SPHINX,
    )
}
