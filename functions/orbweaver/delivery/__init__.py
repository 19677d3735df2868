"""Delivery of exports to an SFTP server or another bucket.

Files are transferred in an order that keeps the receiver's copy consistent.

    plan         decides what to remove and to write at a receiver, and in which order
    known_hosts  parses the trusted SSH keys of a server
    deliverer    carries out the messages of the delivery queue
    transfer     sends the files of one export to one receiver
    ports        interfaces of receivers and of the delivery queue
"""
