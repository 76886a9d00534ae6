"""What came out of an experiment."""

from __future__ import annotations

import dataclasses
import html
import importlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import _native


@dataclasses.dataclass(frozen=True)
class Claim:
    """What is claimed, and what came of it."""

    id: str
    text: str
    #: The published number or words.
    published: str
    #: What it came to; `None` if it was not measured.
    measured: float | None
    #: Its 95 % confidence interval; `None` with a single run.
    interval: tuple[float, float] | None
    #: `accepted`, `refused`, `undecided`, `not-measured` or `shown-only`.
    outcome: str
    #: What a reader must know.
    note: str

    @classmethod
    def _of(cls, members: dict[str, Any]) -> Claim:
        fields = {field.name: members[field.name] for field in dataclasses.fields(cls)}
        if (interval := fields["interval"]) is not None:
            fields["interval"] = (interval["low"], interval["high"])
        return cls(**fields)


class Table:
    """The numbers of every run, for whatever reads Arrow's PyCapsule interface, without a copy.

    It has one row for each point, seed and measure. Of the columns `point`, `scene`, `curve`, `measure` and
    `unit` are texts, `x` and `value` are numbers and `seed` is a whole one. `value` is null if a run has no
    such thing.
    """

    def __init__(self, native: _native.LabOutcome) -> None:
        self._native = native

    def __len__(self) -> int:
        return self._native.rows()

    def __repr__(self) -> str:
        return f"<eyas.lab.Table of {len(self)} rows>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream. Another schema than its own it does not make, as the interface allows."""
        return self._native.arrow()


class Plot:
    """A figure of the report. A notebook shows it; `save` writes it as a page."""

    def __init__(self, title: str, page: str) -> None:
        self.title = title
        self._page = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page of HTML that needs nothing else."""
        Path(path).write_text(self._page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<eyas.lab.Plot {self.title!r}>"

    def _repr_html_(self) -> str:
        # In a frame of its own, so that neither changes how the other looks.
        frame = 'style="width: 100%; height: 36em; border: 0"'
        return f'<iframe {frame} srcdoc="{html.escape(self._page)}"></iframe>'


class Result:
    """What came out of an experiment: claims, sums, and the numbers of every run."""

    def __init__(self, native: _native.LabOutcome, directory: Path) -> None:
        self._native = native
        #: Where finished runs are kept.
        self.directory = directory

    @cached_property
    def document(self) -> dict[str, Any]:
        """`result.json`, as Python reads it."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What is claimed, and what came of it."""
        return tuple(Claim._of(claim) for claim in self.document["claims"])

    def to_json(self) -> str:
        """The text of `result.json`."""
        return self._native.json()

    def to_arrow(self) -> Table:
        """The numbers of every run: `polars.DataFrame(result.to_arrow())` and the like take them."""
        return Table(self._native)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`. Needs pandas, and nothing else."""
        return importlib.import_module("pandas").DataFrame(dict(self._native.columns()))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same as a file of Parquet: that of `eyas lab run --format parquet`. Needs nothing else."""
        self._native.parquet(Path(path))

    def plot(self, figure: int | str = 0) -> Plot:
        """A figure of the plan, by its place or its title."""
        figures = self._native.figures()
        if isinstance(figure, str):
            titles = [title for title, _ in figures]
            if figure not in titles:
                raise KeyError(f"the plan has no figure {figure!r}; it has {titles}")
            figure = titles.index(figure)
        return Plot(*figures[figure])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report: one page with claims, pictures and numbers."""
        Path(path).write_text(self._native.page(), encoding="utf-8")

    def save(self, directory: str | os.PathLike[str] | None = None) -> Path:
        """Writes what `eyas lab run` writes, and says where: into `directory` unless another is named."""
        place = self.directory if directory is None else Path(directory)
        self._native.write(place)
        return place

    def __repr__(self) -> str:
        return f"<eyas.lab.Result of {self.document['plan']}: {self._native.rows()} numbers>"

    def _repr_html_(self) -> str:
        """The claims, for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("claim", "published", "measured", "outcome"))
        rows = "".join(
            f"<tr><td>{html.escape(claim.text)}</td><td>{html.escape(claim.published)}</td>"
            f"<td>{'' if claim.measured is None else format(claim.measured, '.4g')}</td>"
            f"<td>{claim.outcome}</td></tr>"
            for claim in self.claims
        )
        title = html.escape(self.document["title"])
        return f"<table><caption>{title}</caption><tr>{head}</tr>{rows}</table>"
