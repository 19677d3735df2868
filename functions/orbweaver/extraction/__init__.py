"""Extract typed items from pages by rules: CSS, JSON-LD, microdata, numbers, dates.

This room decides which values a rule finds on a page and whether they are valid. The work per page
is limited by a counted budget.

    extract      finds the items of a page
    rules        validates extraction rules
    work_budget  the budget, counted and not timed
    document     the tree and structured data of one page
    css          runs CSS selectors in linear time
    locate       finds the raw values of a field
    json_ld      reads JSON-LD objects
    microdata    reads microdata and meta elements
    regex        matches regular expressions within a text
    convert      converts raw values to a field's type
    numbers      parses numbers and prices
    currencies   maps currency symbols and codes
    dates        parses dates and times
"""
