"""The right to erasure: removes URLs, a host or a crawl from tables, files and exports.

scope         selects the data to erase, also in definitions
erasure       runs all steps of an erasure in order, or previews them
dead_letters  erases in messages that no worker could process
files         erases in stored pages, exports and other files
ports         interfaces to all stored data
"""
