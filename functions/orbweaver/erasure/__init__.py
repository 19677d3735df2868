"""The right to erasure: removes URLs, a host or a crawl from tables, files and exports.

scope         what to erase
rules         what remains of a definition
preview       where such data is stored
erasure       the order of steps
dead_letters  messages that no worker could process
files         stored pages, exports and other files
ports         access to all stored data
"""
