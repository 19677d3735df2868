"""Politeness to hosts: robots.txt, delays between requests, and blocks of failing hosts.

All workers share the `hosts` table. A *slot* is the time at which one request may be sent.

    host_schedule   slots (GCRA), blocks, waiting line
    robots_txt      rules of a robots.txt (RFC 9309)
    robots_rules    rules of one agent, indexed
    robots_escapes  readings of percent-escapes in rules
    robots_cache    fetches and caches robots.txt
    pacer           waits for slots
    host_health     records backoffs, missing responses and recovery of hosts
    ports           interfaces to the hosts table
"""
