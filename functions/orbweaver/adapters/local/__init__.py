"""This machine: the clock, folders, the reader's child process, SFTP.

clock              the time
folder             files in a folder
journal_blob       journals, encoded in a thread
reader             pages read in place or by a child
turns              whose turn it is there
reader_child       the child process
reader_wire        what both say to each other
secrets            of the environment or a folder
custom_extractors  functions of the user's own
sftp               files at an SFTP server
sftp_connection    its connection
"""
