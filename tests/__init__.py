"""The tests, and the sites that they crawl."""
