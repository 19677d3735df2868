"""Check the links of a site, or of a folder of HTML and Markdown files.

command    the command `check-links`
context    its options, the store, and the status of URLs
site       a site: a crawl in the store
files      a folder or file: links to files on disk
folder     HTML and Markdown files as pages, and targets on disk
links      links, the pages that contain them, and anchors
verdict    fine, broken or not verified
report     the result as a report of the audit
plain      the result as text
as_json    the result as JSON
"""
