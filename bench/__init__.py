"""How fast, and for how much: this crawler beside others, on the same sites, on one machine.

    python -m bench --quick              a minute of it, to see that it works
    python -m bench --sites python,generated --peers floor,worker,stack,scrapy,crawlee
    python -m bench --render             write docs/benchmarks.md from the last results

Rules
- One job for all: the same start URL and host, robots obeyed where that can be asked for, 64
  requests at once, no delay; each page's title is read and its links are followed.
- What was fetched, and when, the server says and not the client: a round in which not all got
  the same pages is void.
- The server is a process of its own, measured alone first; its CPU is nobody's.
- Clients take turns, in an order that changes from round to round; medians count.
"""
