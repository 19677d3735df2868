"""Wire settings and adapters to components. This is the only room that imports both.

container         components of one process, opened once
ports             types of the ports that components take
aws_ports         ports over AWS, created on first use
store_ports       ports over the embedded store (SQLite)
wiring            components over ports
store_runner      workers over a store, in processes of this machine
store_waiting     reasons why single URLs of a store wait
store_service     schedules, webhooks and the HTTP API of a store
wiring_exporting  exporters
"""
