"""Live view of a running crawl on a terminal.

lines          progress (`control/progress`) as texts
screen         a screen that fits the terminal, with rates as bars and numbers that change evenly
display        output: screen, lines or JSON
"""
