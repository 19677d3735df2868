"""A small JSON API with each form of paging, and faults on demand."""
