"""Rules to typed items: CSS, JSON-LD, microdata, numbers, dates.

Decides which values a rule finds on a page and whether they fit; spends a counted budget of work.

    extract     the items of a page
    rules       what does not fit in rules
    work        the budget, counted and not timed
    document    one page as rules see it
    css         selectors in linear time
    locate      where the values of a field are
    json_ld     objects that pages state as data
    microdata   and in attributes
    regex       within a text
    convert     values of a type
    numbers     numbers and prices
    currencies  their symbols and codes
    dates       dates and moments
"""
