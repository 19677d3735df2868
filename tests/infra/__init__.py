"""The stack as its template says it, and what its template is made from."""
