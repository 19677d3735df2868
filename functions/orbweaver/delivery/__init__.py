"""Delivery of exports to an SFTP server or another bucket.

Files are transferred in an order that keeps the receiver's copy consistent.

    plan         decides what to remove and to write at a receiver, parses its SSH keys
    deliverer    carries out the messages of the delivery queue, and has its ports
"""
