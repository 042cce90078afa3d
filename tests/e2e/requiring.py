"""What a test needs of its machine. Where that is missing the test is skipped and says why; where
everything must be there (HOLDFAST_REQUIRE_ALL, which `.ci/run` and `make acceptance` set) it fails:
a run in which nothing was looked at must not pass for one in which all is well."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = bool(os.environ.get("HOLDFAST_REQUIRE_ALL"))


def missing(reason: str) -> NoReturn:
    if REQUIRED:
        pytest.fail(f"{reason}, but all of it is required here", pytrace=False)
    pytest.skip(reason)
