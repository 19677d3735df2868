"""The right to erasure: removes URLs, a host or a crawl from tables, messages, files and exports.

scope     what to erase
rules     what remains of each record and message
preview   where such data is stored
erasure   the order of steps
messages  messages and journals
files     stored pages, exports and other files
ports     access to all stored data
"""
