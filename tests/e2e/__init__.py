"""The product as it is used: the stack deployed to an emulator, and real sites over loopback.

One stack is deployed a session (`conftest`), and all tests share it; crawls keep apart by their
names, and every test has sites of its own. `stand` is what tests see of the stack.
"""
