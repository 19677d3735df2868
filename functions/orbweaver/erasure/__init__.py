"""The right to erasure: URLs, a host or a crawl leave tables, messages, files and exports.

Decides what is left of each thing that held them; nothing outside the scope may go.

    scope     what is to be erased
    rules     what is left of a thing
    preview   where there is any of it
    erasure   the order of steps
    messages  out of messages and journals
    files     out of stored pages, exports and other files
    ports     all that is stored
"""
