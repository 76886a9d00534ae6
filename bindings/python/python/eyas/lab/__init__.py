"""Experiments in simulated networks, as functions that return tables.

    import eyas.lab

    result = eyas.lab.run("cmt-delay", quick=True)
    for claim in result.claims:
        print(claim.id, claim.outcome, claim.measured)
    table = result.to_pandas()

A run is a pure function of a situation and a seed, so `executor=` may be any executor of `concurrent.futures`, or a
`Client` of Dask. The results are identical, byte for byte, to those of `eyas lab run` on one machine.
"""

from __future__ import annotations

from ._errors import LabError, OtherCodeError, PlanError, TaskError
from ._plan import Plan, PlanSource, load, plans
from ._result import Claim, Plot, Result, Table
from ._run import Progress, run

__all__ = [
    "Claim",
    "LabError",
    "OtherCodeError",
    "Plan",
    "PlanError",
    "PlanSource",
    "Plot",
    "Progress",
    "Result",
    "Table",
    "TaskError",
    "load",
    "plans",
    "run",
]
