"""A hostile site: bad connections, bad answers, traps and ways inside, each with what must follow.

    site = Hostile()
    with site.in_background():
        crawl(site.seeds("polite"))
        assert found == site.due("polite")

    python -m tests.sites.hostile --port 8000

| module       | what it holds                                                          |
| ------------ | ---------------------------------------------------------------------- |
| `expected`   | the table: all cases, and the tests of those that no site can serve     |
| `site`       | the site as it runs, and the lists that lead to everything              |
| `model`      | rows, places and scripts as values                                      |
| `wire`       | raw servers, and the log of what they heard                             |
| `network`    | connections that break or hang, bodies without a right length           |
| `heads`      | what is not HTTP, heads without measure                                 |
| `redirects`  | redirects, and what they carry                                          |
| `statuses`   | statuses, and hosts that ask for rest                                   |
| `codings`    | bombs, and bodies that cannot be decoded                                |
| `handshakes` | TLS as it should be, and as it should not                               |
| `inward`     | names that lead nowhere, and ways that lead inside                      |
| `content`    | charsets, types, shapes of pages                                        |
| `links`      | links without number, bases, refreshes, wishes                          |
| `robots`     | robots.txt of every kind                                                |
| `sitemaps`   | sitemaps of every kind                                                  |
| `traps`      | places without end                                                      |

Its servers send bytes, so nothing of HTTP is put right on the way; every host is a port.
"""
