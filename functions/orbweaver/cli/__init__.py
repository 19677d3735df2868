"""The command line: parse arguments, call other packages, print results.

`exit_codes` lists the exit codes by cause.

    main              entry point, exit codes
    running           running a command, its errors
    arguments         parser of commands and options
    command           declaration of commands, shared options
    option_types      types of option values
    crawl_options     options of a crawl
    proxy_options     proxies of workers on this machine
    trust_files       certificates that a plan names
    crawl_plan        plan of a crawl, from options and files
    seed_files        seed lists from files and the standard input
    exit_codes        exit codes, usage errors
    causes            exit code of a page or crawl by its reasons
    context           output and machine of a command
    stack             stack of a command
    store             store of a command
    session           open stack or store for one command
    local_machine     access to the emulator, CDK and AWS
    crawl_summary     summary of an ended crawl
    crawl_end         result of a watched crawl
    outdated_pages    pages that earlier runs stored with other settings
    export_files      files of an export
    one_file          one table of a crawl as one file
    crawl_template    definition that `init` writes
    login_check       logins of a definition, tried by `check --login`
    ruling            one host's robots.txt for one command
    gauges            Prometheus metrics
    text              texts and numbers, safe for terminals
"""
