"""Wiring: settings and adapters become actors. The only room that knows both.

container         opened once a process
ports             what actors are given
aws_ports         ports over AWS, as they are needed
store_ports       ports over the embedded store
wiring            actors over them
wiring_exporting  exporters
wiring_delivery   deliverers
"""
