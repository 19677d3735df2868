"""Local web sites for tests and demos.

| module     | content                                                                          |
| ---------- | -------------------------------------------------------------------------------- |
| `server`   | loopback server of all sites, with an access log                                 |
| `bookshop` | shop of 1,000 and more pages with faults of real sites, and the expected results |
| `static`   | a directory of files                                                             |
| `graph`    | scripted answers by path, for one test                                           |
| `mixed`    | a site of which some pages get their text by a script                            |
| `child`    | runs one of these sites in its own process                                       |
| `walk`     | walks a site or a directory, to get the expected result of a crawl               |
| `reader`   | finds the links of a page for `walk`                                             |

Every site binds 127.0.0.1 only. No module here imports the product.
"""
