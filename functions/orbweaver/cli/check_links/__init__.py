"""Check the links of a site, or of a folder of HTML and Markdown files.

command    the command `check-links`
context    its options, the store, and the status of URLs
site       a site: a crawl in the store
files      a folder or file: links to files on disk
folder     files as pages, and targets on disk
markdown   Markdown files as HTML pages
links      links and the pages that contain them
fragments  anchors of a page, and missing anchors
statuses   a crawl with --status-only, and results of earlier checks
verdict    fine, broken or not verified
report     the result as a report of the audit
plain      the result as text
as_json    the result as JSON
"""
