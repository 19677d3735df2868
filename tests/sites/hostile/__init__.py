"""A hostile site: bad connections, bad answers, traps, with the expected outcome of each URL.

    site = Hostile()
    with site.in_background():
        crawl(site.seeds("polite"))
        assert found == site.due("polite")

    python -m tests.sites.hostile --port 8000

| module       | content                                                       |
| ------------ | ------------------------------------------------------------- |
| `expected`   | table of all cases, and tests of cases that no site can serve |
| `site`       | the running site, and the lists of all cases                  |
| `model`      | rows, places and scripts as values                            |
| `wire`       | raw servers, and the log of their requests                    |
| `network`    | connections that break or hang, bodies without a right length |
| `heads`      | non-HTTP answers, oversized heads                             |
| `redirects`  | redirects, and their headers                                  |
| `statuses`   | statuses, and hosts that request delays                       |
| `codings`    | bombs, and bodies that cannot be decoded                      |
| `handshakes` | valid and invalid TLS                                         |
| `inward`     | unresolvable names, and ways to private addresses             |
| `content`    | charsets, types, shapes of pages                              |
| `links`      | endless links, bases, refreshes, nofollow                     |
| `robots`     | robots.txt of every kind                                      |
| `sitemaps`   | sitemaps of every kind                                        |
| `traps`      | endless places                                                |

Its servers send raw bytes, so that no library corrects their HTTP. Every host is a port.
"""
