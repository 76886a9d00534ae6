"""Races and plans without a request: nothing is fetched."""

from __future__ import annotations

import dataclasses
import json

from . import _endpoint, _native
from ._reports import Plan, Race
from ._endpoint import Endpoint, Verify


@dataclasses.dataclass(frozen=True)
class _RaceOptions:
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
    """Races to a URL, or to `sctp+tcp://host:port`, and returns a report, even if no attempt won.

    `all` tries every candidate to completion, regardless of the memory. `seed` makes random decisions reproducible.
    """
    native = _endpoint.endpoint_for(endpoint, verify)._native
    return Race._from_json(_native.race(native, _RaceOptions(url, all, timeout, seed)))


async def arace(
    url: str,
    *,
    all: bool = False,
    timeout: float | None = None,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Race:
    """The awaitable form of `race`."""
    native = _endpoint.endpoint_for(endpoint, verify)._native
    return Race._from_json(await _native.arace(native, _RaceOptions(url, all, timeout, seed)))


def plan(
    url: str,
    *,
    all: bool = False,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Plan:
    """Returns what would be tried, in which order and why. It queries DNS, but opens no connection."""
    native = _endpoint.endpoint_for(endpoint, verify)._native
    return Plan._from_dict(json.loads(_native.plan(native, _RaceOptions(url, all, None, seed))))


async def aplan(
    url: str,
    *,
    all: bool = False,
    seed: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Plan:
    """The awaitable form of `plan`."""
    native = _endpoint.endpoint_for(endpoint, verify)._native
    return Plan._from_dict(json.loads(await _native.aplan(native, _RaceOptions(url, all, None, seed))))
