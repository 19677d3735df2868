"""Adapters for the local machine: clock, folders, page reading in a child process, SFTP.

clock              the time
folder             files in a folder
logs               log events on the standard error
journal_blob       journal encoding, in a thread if long
reader             page reading, in the worker or in a child process
reader_child       the child process
reader_wire        messages between worker and child
heap               memory that the C library keeps
secrets            secrets from the environment or a folder
custom_extractors  the user's extractor functions
sftp               files on an SFTP server
sftp_connection    the SSH connection
"""
