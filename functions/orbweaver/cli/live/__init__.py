"""Live view of a running crawl on a terminal.

interpolation  numbers that change evenly between readings
lines          progress (`control/progress`) as texts
screen         a screen that fits the terminal, with rates as bars
display        output: screen, lines or JSON
"""
