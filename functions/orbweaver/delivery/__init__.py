"""Delivery of exports to an SFTP server or another bucket.

Files are transferred in an order that keeps the receiver's copy consistent.

    plan         which step comes before which
    known_hosts  trusted host keys
    deliverer    one export to its receivers
    transfer     the files of one export
    ports        receivers and the delivery queue
"""
