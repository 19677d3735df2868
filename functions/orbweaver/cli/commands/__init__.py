"""Commands, a module for each or for a few of a kind.

crawl         crawl, start
init_check    init, check
custom        functions of the user's own
robots_url    robots, url
extract       extract
look          status, pages, page, export
explain       explain
hosts_report  hosts, report
edit_retry    edit, retry
steer         pause, resume, cancel, local, deploy, destroy
workers       workers
schedule      schedule
dlq           dlq
forget        forget
cost          cost, estimate
metrics       metrics
deliver       deliver
doctor        doctor
"""
