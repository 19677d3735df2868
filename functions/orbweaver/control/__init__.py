"""A person's commands: crawls, definitions, schedules, retries, webhooks, dead letters.

Decides what a person may ask for; crawls are changed through ports.

    crawl_spec         what is asked of a crawl
    spec_checks        the crawl that it becomes, or what does not fit
    seed_list          its seeds
    definition         the same as a document
    definition_keys    what it may say
    definition_values  and how that is read
    definition_items   its item rules
    definition_lines   and on which line it stands
    definition_toml    and as TOML
    json_schema        what JSON of a type looks like
    json_reader        reading it
    crawl_control      start, pause, resume, cancel
    crawl_queries      ask about crawls
    continuation       what a second command does about an unfinished run
    edits              what may change meanwhile
    rerun              which runs a retry takes
    retry_failures     ask again for what failed
    cron               six fields, and when they come
    time_zone          the day of a moment
    schedule           when a crawl recurs
    stored_reading     stored pages, read anew
    rule_trial         item rules, tried on them
    seed_preview       a first page, before a crawl begins
    scheduler          crawls that recur
    webhook            what is told, signed how
    webhook_sender     told
    dead_letter_admin  look at them, send them back
    cursor             where a listing goes on
    ports              the store of schedules

`progress/` says how a crawl stands.
"""
