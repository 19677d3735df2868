"""Those that are measured: each a process of its own, its last line of output says what it got."""
