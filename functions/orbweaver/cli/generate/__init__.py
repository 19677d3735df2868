"""Generate files for a site's root folder from the exported pages of a crawl.

command   the command `generate`
listing   the pages that the files list, and the reasons why others are left out
sitemap   sitemap.xml, divided into several files if necessary
llms_txt  llms.txt
"""
