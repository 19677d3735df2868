"""Exports brought elsewhere: an SFTP server, another bucket.

Decides the order in which files go, so that what stands there is whole.

    plan         what must go before what
    known_hosts  which host keys are believed
    deliverer    one export to its receivers
    transfer     one file after the other
    ports        receivers and the delivery queue
"""
