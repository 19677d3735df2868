"""The view of a crawl while it runs.

status     what can be said of it
rates      how fast it goes
forecast   how long it takes, and why
spending   its budgets, and what it costs
hosts      its hosts
glide      numbers that move evenly
lines      all of that in words
screen     as a picture of a terminal's size, with rates as bars
display    how it is shown
"""
