"""The view of a crawl while it runs, on a terminal.

glide      numbers that move evenly
lines      what can be said of it (`control.progress`), in words
screen     as a picture of a terminal's size, with rates as bars
display    how it is shown
"""
