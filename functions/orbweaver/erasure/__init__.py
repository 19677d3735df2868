"""The right to erasure: removes URLs, a host or a crawl from tables, files and exports.

scope         selects the data to erase
rules         removes URLs from a crawl's definition and from examples of refused links
preview       counts the stored data in scope
erasure       runs all steps of an erasure in order
dead_letters  erases in messages that no worker could process
files         erases in stored pages, exports and other files
ports         interfaces to all stored data
"""
