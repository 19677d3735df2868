"""Wire settings and adapters to components. This is the only room that imports both.

container         components of one process, opened once
ports             types of the ports that components take
aws_ports         ports that use AWS, created on first use
store_ports       ports that use the embedded store (SQLite)
wiring            components that use the ports
worker_proxies    whether the workers of a store have the proxies of a crawl
proxy_guard       pauses crawls for which a worker lacks proxies
store_runner      the worker of a store in this process
further_processes  further worker processes of a store
store_waiting     URLs of a store that wait or are in flight
store_service     schedules, webhooks and the HTTP API of a store
wiring_exporting  exporters
file_retention    retention of stored files by prefix
"""
