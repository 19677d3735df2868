"""Audit a site: run checks on the exported tables of a crawl, and report what to fix.

command       the command `audit`
selection     the runs to audit, from the tables
exported      the audit of a run of exports
background    audits and backlinks for the console, in child processes
child         the tasks of these processes
backlinks     the pages that link to a URL
auditor       execution of the checks, comparison with an earlier run
judgement     reasons that are not the site's fault
catalog       the checks of the folder checks/
report        results of an audit
plain         the report as text
as_json       the report as JSON
sarif         the report as SARIF
junit         the report as JUnit XML
html          the report as one HTML file
"""
