"""Wiring: settings and adapters become actors. The only room that knows both.

container         opened once a process
ports             what actors are given
aws_ports         ports over AWS, as they are needed
store_ports       ports over the embedded store
wiring            actors over them
store_runner      workers over a store, in processes of this machine
store_waiting     reasons why single URLs of a store wait
store_service     schedules, webhooks and the HTTP API of a store
wiring_exporting  exporters
wiring_delivery   deliverers
"""
