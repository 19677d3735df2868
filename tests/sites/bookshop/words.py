"""Words of the bookshop's catalogue."""

# ruff: noqa: RUF001  # a shop writes real quotes and dashes, and they are part of the data
from __future__ import annotations

CATEGORIES = (
    "Travel", "Mystery", "Historical Fiction", "Classics", "Philosophy", "Romance", "Poetry",
    "Science", "Science Fiction", "Fantasy", "Cookery", "Gardening", "Art", "Music", "Biography",
    "Children", "Crime", "Economics", "Religion & Belief", "Nature", "Sport", "Health", "Politics",
    "Humour", "Languages",
)  # fmt: skip

ADJECTIVES = (
    "Quiet", "Last", "Hidden", "Golden", "Broken", "Distant", "Salt", "Winter", "Paper", "Silver",
    "Borrowed", "Patient", "Hollow", "Crimson", "Northern", "Invisible", "Slow", "Second", "Gentle",
    "Forgotten", "Early", "Bitter", "Wandering", "Ordinary", "Bright", "Unfinished",
)  # fmt: skip

NOUNS = (
    "River", "Garden", "Lighthouse", "Orchard", "Letter", "Clock", "Harbour", "Mountain", "Library",
    "Window", "Song", "Kitchen", "Map", "Bridge", "Island", "Mirror", "Forest", "Season", "Market",
    "Voyage", "Teacher", "Machine", "Shadow", "Theatre", "Storm", "Spider", "Telescope", "Village",
)  # fmt: skip

PLACES = (
    "Lisbon", "the North Sea", "Kraków", "the Valley", "São Tomé", "Whitby", "Kyoto", "the Marshes",
    "Trieste", "the Border", "Zürich", "the Old Quarter", "Patagonia", "the Coast", "Tallinn",
)  # fmt: skip

# Parts of real titles: markup characters, quotes of both kinds, dashes, other scripts.
TITLES = (
    "{adjective} {noun}",
    "The {adjective} {noun}",
    "The {noun} of {place}",
    "{noun} & {noun2}",
    "The {noun}'s {noun2}",
    "“{adjective}”: Essays on the {noun}",
    "{noun} < {noun2}: A Love Story",
    "How to Read a {noun}",
    "{adjective} {noun} – {place}, a Memoir",
    "The {noun} and the {noun2}",
)

AUTHORS_FIRST = (
    "Ada", "José", "Ingrid", "Wisława", "Tomáš", "Amélie", "Kofi", "Yuki", "Ewan", "Nadia",
    "Søren", "Beatriz", "Harold", "Leïla", "Priya",
)  # fmt: skip

AUTHORS_LAST = (
    "Ångström", "Moreau", "Okafor", "Novák", "Lindqvist", "O’Brien", "Tanaka", "Ferreira",
)  # fmt: skip

# In lower case except for places, and without an article that would depend on the next word.
SENTENCES = (
    "The {adjective} story of one {noun} that nobody in {place} will speak of.",
    "When the {noun} is found empty, an archivist must choose between truth and her {noun2}.",
    "Part memoir, part field guide, it starts with the {adjective} {noun} and ends in {place}.",
    "Critics called it “{adjective}, and necessary”; its readers simply lent it to each other.",
    "With forty drawings of the {adjective} {noun}, and an index that is a story in itself.",
    "Everything changes on the morning the {noun2} goes missing.",
    "The author spent eleven years in {place}, and it shows on every page.",
    "For all who have ever lost their {noun} & found some {adjective} {noun2} instead.",
)

RATINGS = ("One", "Two", "Three", "Four", "Five")
