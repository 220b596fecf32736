"""The bytes of written and of laid-out data (FORMAT.md, Randomness). Pure: no files here."""

from functools import lru_cache
from typing import Any

from tests.oracle.randomness import MASK, G, mix64, scaled

BLOCK_BYTES = 4096
CHUNK_BYTES = 1 << 20
POOL_SALT = 0x5EED5EED5EED5EED


@lru_cache(maxsize=8)
def make_pool(seed: int, pool_bytes: int) -> bytes:
    """Make the pool of random bytes that all data are slices of."""
    words = (mix64(((seed ^ POOL_SALT) + G * (i + 1)) & MASK) for i in range(pool_bytes // 8))
    return b"".join(word.to_bytes(8, "little") for word in words)


def zero_percent(content: str | dict[str, int]) -> int:
    """Say which share of every block is zeros."""
    match content:
        case "random":
            return 0
        case "zeros":
            return 100
        case {"compressible": int(percent)}:
            return percent
        case _:
            message = f"content must be random, zeros or compressible, got {content!r}"
            raise ValueError(message)


def thinned(data: bytes, percent: int) -> bytes:
    """Replace the first percent of every block with zeros."""
    zeros = bytes(BLOCK_BYTES * percent // 100)
    blocks = (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
    return b"".join(zeros[: len(block)] + block[len(zeros) :] for block in blocks)


def sliced(pool: bytes, size: int, value: int) -> bytes:
    """Take the slice of the pool that a 64-bit value stands for."""
    at = 8 * scaled(mix64(value & MASK), (len(pool) - size) // 8 + 1)
    return pool[at : at + size]


@lru_cache(maxsize=8)
def _written_pool(seed: int, pool_bytes: int, percent: int) -> bytes:
    return thinned(make_pool(seed, pool_bytes), percent)


def written_pool(document: dict[str, Any]) -> bytes:
    """Make the copy of the pool that writes are sliced from."""
    percent = zero_percent(document["written"])
    return _written_pool(document["seed"], document["pool_bytes"], percent)


def written(document: dict[str, Any], user: int, number: int, size: int) -> bytes:
    """Make what a user's write op with this number writes."""
    return sliced(written_pool(document), size, mix64((user + G) & MASK) + number)


def laid_out(document: dict[str, Any], dataset: int, entry: int, user: int) -> bytes:
    """Make the content of a dataset's file, in the copy of this user (0 when shared)."""
    pool = make_pool(document["seed"], document["pool_bytes"])
    chunk_bytes = min(CHUNK_BYTES, len(pool) - 8)
    of_entry = mix64((G * (dataset + 1) + entry) & MASK)
    of_copy = mix64((of_entry + G * (user + 1)) & MASK)
    size = document["datasets"][dataset]["entries"][entry][2]
    starts = range(0, size, chunk_bytes)
    chunks = (
        sliced(pool, min(chunk_bytes, size - start), of_copy + chunk)
        for chunk, start in enumerate(starts)
    )
    return thinned(b"".join(chunks), zero_percent(document["datasets"][dataset]["content"]))
