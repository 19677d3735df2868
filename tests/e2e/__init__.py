"""End-to-end tests: the stack on an emulator, and real sites over loopback.

One stack is deployed per session (`conftest`) and shared by all tests. Crawls differ by name, and
every test has its own sites. `stand` is the tests' view of the stack.
"""
