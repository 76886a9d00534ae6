"""A race or a plan for its own sake: nothing is fetched."""

from __future__ import annotations

import dataclasses
import json

from . import _endpoint, _native
from ._reports import Plan, Race
from ._endpoint import Endpoint, Verify


@dataclasses.dataclass(frozen=True)
class _Wanted:
    url: str
    all: bool
    timeout: float | None
    seed: int | None


def race(
    url: str,
    *,
    all: bool = False,
    timeout: float | None = None,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Race:
    """Races to a URL, or to `sctp+tcp://host:port`, and says how it went, also if nothing won.

    `all` tries every candidate to its end, whatever is remembered. `seed` settles what chance decides.
    """
    native = _endpoint.of(endpoint, verify)._native
    return Race._of(_native.race(native, _Wanted(url, all, timeout, seed)))


async def arace(
    url: str,
    *,
    all: bool = False,
    timeout: float | None = None,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Race:
    """`race`, to be awaited."""
    native = _endpoint.of(endpoint, verify)._native
    return Race._of(await _native.arace(native, _Wanted(url, all, timeout, seed)))


def plan(
    url: str,
    *,
    all: bool = False,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Plan:
    """What would be tried, in which order and why. DNS is asked, nothing is connected to."""
    native = _endpoint.of(endpoint, verify)._native
    return Plan._of(json.loads(_native.plan(native, _Wanted(url, all, None, seed))))


async def aplan(
    url: str,
    *,
    all: bool = False,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Plan:
    """`plan`, to be awaited."""
    native = _endpoint.of(endpoint, verify)._native
    return Plan._of(json.loads(await _native.aplan(native, _Wanted(url, all, None, seed))))
