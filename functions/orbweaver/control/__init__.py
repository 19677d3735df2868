"""Execute the commands of users: crawls, definitions, schedules, retries, webhooks, dead letters.

This package validates the requests of users, and changes crawls through ports.

    crawl_spec         plan: the settings of a crawl
    spec_checks        validation of a plan and its seeds, and the crawl made from it
    definition         plans from and to definitions
    definition_keys    keys of definitions, and their item rules
    definition_api     the key `api`: APIs that are crawled page by page
    definition_auth    logins in definitions
    definition_access  limits of requests to one host in definitions
    definition_values  values of definitions
    definition_lines   definitions as TOML, line numbers of keys
    json_reader        values of types from JSON, JSON schemas of types
    crawl_control      start, pause, resume, cancel
    crawl_queries      queries about crawls
    continuation       decision about an unfinished run
    edits              changes to a running crawl
    rerun              runs that retry failures
    cron               cron expressions
    schedule           intervals and events of schedules
    rule_trial         stored pages, parsed again, also with item rules to try
    seed_preview       preview of a crawl's first page
    scheduler          recurring crawls, and the port that stores their schedules
    webhook            content, signature and delivery of webhooks
    dead_letter_admin  inspection, redrive and deletion of dead letters

`progress/` describes the state of a crawl.
"""
