"""The definition that `orbweaver init` writes: every key, with what holds where it is left out."""

STARTER = """\
# What to crawl, and how. `orbweaver check crawl.toml` says what this would do.
# Keys that begin with # are left out: what stands there is the default, or an example (e.g.).

# Runs of one name share what they have seen; default: the host of the first seed.
# name = "my-site"  # e.g.
# Where to begin; edit this.
seeds = ["https://example.com/"]
# More of them, one a line; # begins a comment. The path is seen from this file; "-": the input.
# seeds_file = "seeds.txt"  # e.g.
# Sitemaps to begin with, beside seeds or instead of them.
# sitemaps = ["https://example.com/sitemap.xml"]  # e.g.
# "high" goes past other crawls.
# priority = "normal"

[scope]
# Links that belong: on their page's "host", its "domain", below a seed's folder ("prefix"), "any".
# links = "host"
# Of these only what one of some regular expressions is found in; and never what one of others is.
# include = ["/articles/"]  # e.g.
# exclude = ["/login", '\\.pdf$']  # e.g.
# Whether the sitemaps are read that robots.txt names.
# robots_sitemaps = true

[limits]
# Links from a seed.
# depth = 20
# URLs, exactly; without it about a million.
pages = 1000
# URLs of each host; the others go on.
# host_pages = 500  # e.g.
# Time from the start; a week at most.
# duration = "7d"
# What bodies may come to, all together.
# bytes = "10GB"  # e.g.
# What the crawl may cost on AWS, by an estimate from list prices.
# dollars = 5  # e.g.

[politeness]
# Between two requests to a host. robots.txt may ask for more, and gets it.
# delay = "1s"
# Requests to a host at a time; 1, without a delay 16.
# concurrency = 2  # e.g.
# Whether robots.txt is obeyed; false only on sites of your own.
# robots = true

[identity]
# Who asks; of several each host sees one. Default: the stack's own.
# user_agents = ["my-crawler/1.0 (+https://example.com/bot)"]  # e.g.
# Sent along; what may be a secret to the seeds' own origins only.
# headers = { "Accept-Language" = "de" }  # e.g.
# Whether cookies that a site sets are sent back to it, within the crawl.
# cookies = false
# Headers for one host alone: for example an API key. A host is its https origin, if no seed says
# otherwise.
# hosts = { "api.example.com" = { headers = { "X-Api-Key" = "key" } } }  # e.g.
# Whether to ask through the proxies, where the stack has any.
# proxies = true

[dedup]
# What a run of the same name has seen within this time is not asked for again; "0s": all is.
# window = "7d"
# Parameters taken out of URLs, beside the usual ones (utm_*, gclid, phpsessid and others).
# strip_parameters = ["ref", "my_*"]  # e.g.
# Whether the usual ones are kept.
# keep_parameters = false

[records]
# Whether pages are left out that name another one as canonical; that one is asked for.
# canonical = false
# Pages that ask not to be indexed: "record" marks them, "skip" leaves them out.
# noindex = "record"
# Whose bodies are stored: those of "html" pages, of "all" there is (which is fetched then), "off".
# bodies = "html"
# Whether the main text of pages is kept, as text and as Markdown.
# text = false
# What is taken out of pages before they are stored: "email" addresses, "phone" numbers.
# redact = ["email", "phone"]  # e.g.

# When it recurs, once `orbweaver schedule put` has said so: so often, or by cron on some clocks.
[schedule]
# every = "6h"  # e.g.
# cron = "0 3 * * ? *"  # e.g.
# timezone = "Europe/Berlin"  # e.g.
# What happens while an earlier run has not ended: "skip" passes the time over, "allow" starts.
# overlap = "skip"

[notify]
# Who is told when a run has ended; needs a stack with a webhook_secret.
# webhook = "https://example.com/hooks/crawled"  # e.g.

# What holds for some URLs only: those in which a regular expression is found. Of each thing the
# first rule decides that matches and says something of it: depth (of these URLs, instead of
# limits.depth), priority, delay, window, follow (take links of the page), record.
# [[rules]]  # e.g.
# match = '^https://example\\.com/$'  # e.g.
# priority = "high"  # e.g.
# window = "1h"  # e.g.
# [[rules]]  # e.g.
# match = '/archive/'  # e.g.
# depth = 2  # e.g.
# delay = "5s"  # e.g.
# follow = false  # e.g.
# record = false  # e.g.

# What is taken from pages in whose URL a regular expression is found, as rows of a table of their
# own: docs/extraction.md. `orbweaver extract URL --config crawl.toml` tries it on one page.
# [[items]]  # e.g.
# name = "articles"  # e.g.
# match = '/articles/'  # e.g.
# fields = { title = "h1", day = { css = "time", attribute = "datetime", type = "date" } }  # e.g.
"""
