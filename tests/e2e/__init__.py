"""End-to-end tests: the stack on an emulator, and real sites over loopback.

`conftest` deploys one stack per session for all tests. Each test names its own crawls and serves
its own sites.
"""
