"""Where images are cut: nothing is lost, and long runs of zeros are chunks of their own."""

from __future__ import annotations

import io
import random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.continuity.image_cutting import CHUNK_MAX_BYTES, PAGE_BYTES, chunks_of

STEP = 16 * PAGE_BYTES


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3 * STEP)), max_size=8), st.integers())
def test_the_pieces_are_the_whole_and_none_is_too_large(
    runs: list[tuple[bool, int]], seed: int
) -> None:
    noise = random.Random(seed)
    data = b"".join(bytes(size) if zeros else noise.randbytes(size) for zeros, size in runs)
    chunks = list(chunks_of(io.BytesIO(data)))
    assert b"".join(chunks) == data
    assert all(0 < len(chunk) <= CHUNK_MAX_BYTES for chunk in chunks)


def test_memory_that_was_never_written_to_is_cut_out() -> None:
    """As of an output buffer: a page at its head, some output, and megabytes of nothing."""
    noise = random.Random(1)
    data = noise.randbytes(PAGE_BYTES) + bytes(3 << 20) + noise.randbytes(70_000) + bytes(5 << 20)
    written = [chunk for chunk in chunks_of(io.BytesIO(data)) if any(chunk)]
    assert sum(map(len, written)) < PAGE_BYTES + 70_000 + 4 * STEP
