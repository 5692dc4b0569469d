"""Threads that read samples and put them into one queue."""

import queue
import threading
import zlib


def read(row):
    """A sample; taking it apart and together again stands for decoding."""
    packed = zlib.compress(row.numpy().tobytes() * 2000)
    return row if zlib.decompress(packed) else None


def start_readers(tables):
    """One thread per table; the queue that they fill."""
    samples = queue.Queue(maxsize=16)

    def fill(table):
        for row in table:
            samples.put(read(row))  # <- planted

    for table in tables:
        threading.Thread(target=fill, args=(table,), daemon=True).start()
    return samples
