"""Politeness to hosts: robots.txt, slots of the pace, rests after trouble.

Decides for all workers together by items of the `hosts` table, through its port.

    host_schedule   slots (GCRA), blocks, waiting line
    robots_txt      rules of a robots.txt (RFC 9309)
    robots_rules    rules of one agent, indexed
    robots_escapes  what percent-escapes in them mean
    robots_cache    robots.txt, fetched and kept
    pacer           waiting for slots
    host_load       how many requests at once it stands
    host_health     rebuffs, silence, recovery
    ports           the store of hosts
"""
