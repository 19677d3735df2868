"""The tests, and the sites that they crawl.

Labels such as `(case 32)` number the faults that the tests cover. tests/sites/hostile/expected.py
maps the cases 31 to 78 to pages of a test site and to tests.
"""
