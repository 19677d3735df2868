"""Scrapy as its documentation describes a broad crawl of one site, with its own link extractor.

In addition to the common task: `DOWNLOAD_VERIFY_CERTIFICATES` (off by default), no log lines per
page (as its documentation on broad crawls advises), and no web console. It trusts OpenSSL's
authorities (`SSL_CERT_FILE`). With `--breadth-first` it follows links in the order found; otherwise
the last found comes first.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor

sys.path.insert(0, str(Path(__file__).parents[2]))  # the interpreter has only Scrapy
from bench.clients.said import arguments, said

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}
GOT = {"pages": 0, "titles": 0, "bytes": 0}


class Spider(scrapy.Spider):  # type: ignore[misc]
    """Follows all links of a host."""

    name = "bench"
    custom_settings: ClassVar[dict[str, Any]] = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }
    links = LinkExtractor()
    start_url: str

    async def start(self) -> AsyncIterator[Any]:
        """Request the start URL once. `start_urls` would request it twice."""
        yield scrapy.Request(self.start_url)

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        content_type = response.headers.get("Content-Type") or b""
        if not isinstance(response, TextResponse) or b"html" not in content_type:
            return
        GOT["pages"] += 1
        GOT["bytes"] += len(response.body)
        GOT["titles"] += bool((response.css("title::text").get() or "").strip())
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


def main() -> None:
    asked = arguments("--breadth-first")
    host = asked.url.partition("://")[2].partition("/")[0].partition(":")[0]
    settings: dict[str, Any] = BREADTH_FIRST if asked.breadth_first else {}
    settings |= {
        "CONCURRENT_REQUESTS": asked.at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": asked.at_once,
    }
    process = CrawlerProcess(settings)
    process.crawl(Spider, start_url=asked.url, allowed_domains=[host])
    process.start()
    said(GOT, {"scrapy": scrapy.__version__, "python": sys.version.split()[0]})


if __name__ == "__main__":
    main()
