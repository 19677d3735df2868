"""The functions that a Python program may call: `import orbweaver`.

Decides what is taken and how a mistake is told; the work is done by inner rooms, as in a crawl. The
package offers these names and imports nothing before one of them is asked for.

    reading  URLs, robots.txt, pages, items, Markdown
"""
