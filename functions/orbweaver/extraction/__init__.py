"""Extract typed items from pages by rules: CSS, JSON-LD, microdata, numbers, dates.

This package decides which values a rule finds on a page and whether they are valid. A counted
budget limits the work per page.

    extract      finds the items of a page
    rules        validates extraction rules
    work_budget  defines the budget, which is counted and not timed
    document     holds the tree and structured data of one page
    css          runs CSS selectors in linear time
    locate       finds the raw values of a field
    json_ld      reads JSON-LD objects, microdata and meta elements
    json_document  decodes JSON responses within limits
    json_path    evaluates JSONPath on decoded JSON
    regex        matches regular expressions within a text
    convert      converts raw values to a field's type: numbers, prices, dates
    currencies   maps currency symbols and codes
"""
