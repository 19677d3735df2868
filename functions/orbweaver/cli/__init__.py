"""The command line: arguments become calls of inner rooms, and their results lines.

Exit codes: 0 done, 1 the crawl fetched nothing or failed above the asked threshold (or there is no
such record, or its files cannot be written), 2 usage, 3 the stack cannot be reached, 130
interrupted, 141 nothing reads the output any more (`| head`).

    main              from words to an exit code
    arguments         commands and options, from words
    command           what a command is, and options of several
    option_types      what their values mean
    crawl_options     what a crawl may be told
    seed_files        lists of URLs, read from files and the input
    exit_codes        how commands end
    stack             which stack to use
    store             which store to use
    session           open ports for one command
    local_machine     the emulator, CDK, AWS's endpoints
    crawl_summary     what a crawl came to
    crawl_end         the end of watching one
    export_files      where exports go
    one_file          one table of a crawl as one file
    crawl_template    a definition to begin with
    ruling            robots.txt for one command
    gauges            what is shown to Prometheus
    text              words for people, safe for terminals
"""
