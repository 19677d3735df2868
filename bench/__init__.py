"""Speed and cost: this crawler compared with others, on the same sites, on one machine.

    python -m bench --quick              one minute, to see that it works
    python -m bench --sites python,generated --peers floor,worker,stack,scrapy,crawlee
    python -m bench --render             write docs/benchmarks.md from the last results

- All clients have the same task: the same start URL and host, robots.txt obeyed where possible, 64
  concurrent requests, no delay. They read each page's title and follow its links.
- The server, in its own process, reports what was fetched and when. Its CPU counts for no client. A
  round in which clients got different pages is void.
- Clients take turns in an order that changes each round. Results are medians.
"""
