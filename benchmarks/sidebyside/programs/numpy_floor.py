"""The floor: chunked numpy, one process, written for this exchange alone."""

import numpy as np

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, perform

CHUNK = 32 * CLUSTER


def labels(users):
    """Return what ``exchange.label`` says, for many users."""
    return users % 10 < np.where(users // CLUSTER % 2, 7, 3)


def prepare(count, seed):
    y = np.concatenate([labels(np.arange(low, min(low + CHUNK, count))) for low in range(0, count, CHUNK)])
    words = np.random.Philox(seed)  # numpy imports this part of it only now

    def exchange(begin):
        begin()
        got, ones = np.zeros(count, np.uint16), np.zeros(count, np.uint16)
        for low in range(0, count, CHUNK):
            high = min(low + CHUNK, count)
            size = high - low
            y_hat = y[low:high] ^ (words.random_raw(size) < np.uint64(int(ALPHA * 2**64)))
            drawn = (words.random_raw(size) >> np.uint64(32)) * np.uint64(CLUSTER) >> np.uint64(32)
            peers = np.arange(size) // CLUSTER * CLUSTER + drawn.astype(np.int64)
            got[low:high] = np.bincount(peers, minlength=size)
            ones[low:high] = np.bincount(peers[y_hat], minlength=size)
        return got, ones

    return exchange


if __name__ == "__main__":
    perform(prepare)
