"""The measured clients. Each is a process whose last output line is its result."""
