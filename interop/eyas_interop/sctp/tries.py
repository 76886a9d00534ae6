"""Trying a case: once, and once more if it fails, aloud."""

import dataclasses
from collections.abc import Callable

from ..report import Skip

Seen = tuple[bool, str]


@dataclasses.dataclass
class Outcome:
    """How a case went."""

    fine: bool
    detail: str
    # Whether it took a second try.
    again: bool = False

    @property
    def cell(self) -> str:
        """For the table: chance is not hidden there either."""
        return ("again" if self.again else "ok") if self.fine else "FAIL"


def tries(case: Callable[[], Seen], heal: Callable[[], None]) -> Outcome:
    """Tries a case, and heals the network after each try.

    Timers of real kernels and a busy machine meet here: chance gets one more try, and is told of.
    """
    fine, detail = _once(case, heal)
    if fine:
        return Outcome(fine, detail)
    first = detail
    fine, detail = _once(case, heal)
    return Outcome(fine, f"at the second try: {detail}; the first: {first}", again=True)


def _once(case: Callable[[], Seen], heal: Callable[[], None]) -> Seen:
    try:
        return case()
    except Skip:
        raise
    except Exception as error:  # one broken case must not hide the others
        return False, f"{type(error).__name__}: {error}"
    finally:
        heal()
