"""One suite per port, run on the memory adapter and on the real one over two emulations of AWS."""
