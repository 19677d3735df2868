"""Execute the commands of users: crawls, definitions, schedules, retries, webhooks, dead letters.

This package validates the requests of users, and changes crawls through ports.

    crawl_spec         plan: the settings of a crawl
    spec_checks        validation of a plan, and the crawl made from it
    seed_list          seeds and sitemaps of a plan
    definition         plans from and to definitions
    definition_keys    keys of definitions
    definition_values  values of definitions
    definition_items   item rules of definitions
    definition_lines   line numbers of keys
    definition_toml    definitions as TOML
    json_schema        JSON schemas of types
    json_reader        values of types from JSON
    crawl_control      start, pause, resume, cancel
    crawl_queries      queries about crawls
    continuation       decision about an unfinished run
    edits              changes to a running crawl
    rerun              selection of failures to retry
    retry_failures     runs that retry failures
    cron               cron expressions
    time_zone          time zones by name
    schedule           intervals and events of schedules
    stored_reading     stored pages, parsed again
    rule_trial         item rules tried on stored pages
    seed_preview       preview of a crawl's first page
    scheduler          recurring crawls
    webhook            content and signature of webhooks
    webhook_sender     delivery of webhooks
    dead_letter_admin  inspection, redrive and deletion of dead letters
    cursor             positions in listings
    ports              port: the storage of schedules

`progress/` describes the state of a crawl.
"""
