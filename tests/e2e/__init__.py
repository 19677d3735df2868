"""End-to-end tests: the stack on an emulator, and real sites over loopback.

`conftest` deploys one stack per session, which all tests share. Crawls differ by name, and every
test has its own sites. `stand.py` gives tests access to the stack.
"""
