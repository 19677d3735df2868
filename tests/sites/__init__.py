"""Web sites that run on this machine, for tests and demos.

| module     | what it serves                                                                     |
| ---------- | ---------------------------------------------------------------------------------- |
| `server`   | nothing of its own: one loopback server, its access log, and the ways to run it    |
| `bookshop` | a seeded shop of 1,000 and more pages with the faults of real sites, and their sets |
| `static`   | a directory of files                                                               |
| `graph`    | scripted answers by path, for one test                                             |
| `mixed`    | a site of which some pages get their text by a script                              |
| `child`    | nothing: it runs one of the above in a process of its own                          |
| `walk`     | nothing: it walks a site or a directory, as the oracle for a crawl                 |
| `reader`   | nothing: it finds the links of a page for `walk`                                   |

Every site binds 127.0.0.1 only. Nothing here imports the product.
"""
