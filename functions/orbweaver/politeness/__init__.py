"""Politeness to hosts: robots.txt, slots, and blocks after trouble.

Items of the `hosts` table, behind a port, coordinate all workers.

    host_schedule   slots (GCRA), blocks, waiting line
    robots_txt      rules of a robots.txt (RFC 9309)
    robots_rules    rules of one agent, indexed
    robots_escapes  readings of percent-escapes in rules
    robots_cache    fetches and caches robots.txt
    pacer           waits for slots
    host_load       number of concurrent requests, by response times
    host_health     reports backoffs, silence and recovery of hosts
    ports           port of the hosts table
"""
