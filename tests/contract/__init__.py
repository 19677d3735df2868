"""Contract tests of the ports: each suite runs on the memory adapter and on two AWS emulators."""
