"""Heaps of the C library."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Allocates in threads, and prints the number of heaps that `malloc_info` lists.
PROGRAM = """
import ctypes, sys, threading
from orbweaver.adapters.local.heap import use_one_heap
if sys.argv[1:]:
    use_one_heap()
kept, at_end = [], threading.Barrier(4)
def allocate():
    kept.append([bytes(2_000) for _ in range(500)])
    at_end.wait()
threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
library.malloc_info(0, out)
library.fclose(out)
"""


def heaps(*words: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True)
    return done.stdout.count(b"<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several heaps")
def test_threads_share_one_heap() -> None:
    assert heaps() > 1
    assert heaps("one") == 1
