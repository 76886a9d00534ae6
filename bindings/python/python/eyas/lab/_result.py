"""Results of experiments."""

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
    """A claim and its outcome."""

    id: str
    text: str
    #: The published number or text.
    published: str
    #: The measured value; `None` if it was not measured.
    measured: float | None
    #: Its 95 % confidence interval; `None` with a single run.
    interval: tuple[float, float] | None
    #: `accepted`, `refused`, `undecided`, `not-measured`, `not-judged` or `shown-only`.
    outcome: str
    #: A remark for the reader.
    note: str

    @classmethod
    def _from_dict(cls, members: dict[str, Any]) -> Claim:
        fields = {field.name: members[field.name] for field in dataclasses.fields(cls)}
        if (interval := fields["interval"]) is not None:
            fields["interval"] = (interval["low"], interval["high"])
        return cls(**fields)


class Table:
    """The numbers of all runs, for consumers of Arrow's PyCapsule interface, without a copy.

    There is one row per point, seed and measure. The columns `point`, `scene`, `curve`, `measure` and `unit` are
    strings, `x` and `value` are floating-point numbers, and `seed` is an integer. `value` is null if a run does not
    have the measure.
    """

    def __init__(self, native: _native.LabOutcome) -> None:
        self._native = native

    def __len__(self) -> int:
        return self._native.rows()

    def __repr__(self) -> str:
        return f"<eyas.lab.Table of {len(self)} rows>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the stream. `requested_schema` is ignored, which the interface permits."""
        return self._native.arrow()


class Plot:
    """A figure of the report. Notebooks display it; `save` writes it as an HTML page."""

    def __init__(self, title: str, page: str) -> None:
        self.title = title
        self._page = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a self-contained HTML page."""
        Path(path).write_text(self._page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<eyas.lab.Plot {self.title!r}>"

    def _repr_html_(self) -> str:
        # In a frame, so that the styles of the page and the notebook do not affect each other.
        frame = 'style="width: 100%; height: 36em; border: 0"'
        return f'<iframe {frame} srcdoc="{html.escape(self._page)}"></iframe>'


class Result:
    """The result of an experiment: claims, aggregates, and the numbers of all runs."""

    def __init__(self, native: _native.LabOutcome, directory: Path) -> None:
        self._native = native
        #: The directory in which finished runs are kept.
        self.directory = directory

    @cached_property
    def document(self) -> dict[str, Any]:
        """The parsed `result.json`."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims and their outcomes."""
        return tuple(Claim._from_dict(claim) for claim in self.document["claims"])

    def to_json(self) -> str:
        """Returns the text of `result.json`."""
        return self._native.json()

    def to_arrow(self) -> Table:
        """Returns the numbers of all runs, for `polars.DataFrame(result.to_arrow())` and the like."""
        return Table(self._native)

    def to_pandas(self) -> Any:
        """Returns the numbers of all runs as a `pandas.DataFrame`. Needs only pandas."""
        return importlib.import_module("pandas").DataFrame(dict(self._native.columns()))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the numbers of all runs as Parquet, like `eyas lab run --format parquet`. Needs nothing else."""
        self._native.parquet(Path(path))

    def plot(self, figure: int | str = 0) -> Plot:
        """Returns a figure of the plan, by its index or title."""
        figures = self._native.figures()
        if isinstance(figure, str):
            titles = [title for title, _ in figures]
            if figure not in titles:
                raise KeyError(f"the plan has no figure {figure!r}; it has {titles}")
            figure = titles.index(figure)
        return Plot(*figures[figure])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report: an HTML page with claims, figures and numbers."""
        Path(path).write_text(self._native.page(), encoding="utf-8")

    def save(self, directory: str | os.PathLike[str] | None = None) -> Path:
        """Writes the files of `eyas lab run`; returns their directory, by default `self.directory`."""
        target = self.directory if directory is None else Path(directory)
        self._native.write(target)
        return target

    def __repr__(self) -> str:
        return f"<eyas.lab.Result of {self.document['plan']}: {self._native.rows()} numbers>"

    def _repr_html_(self) -> str:
        """Returns a table of the claims, for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("claim", "published", "measured", "outcome"))
        rows = "".join(
            f"<tr><td>{html.escape(claim.text)}</td><td>{html.escape(claim.published)}</td>"
            f"<td>{'' if claim.measured is None else format(claim.measured, '.4g')}</td>"
            f"<td>{claim.outcome}</td></tr>"
            for claim in self.claims
        )
        title = html.escape(self.document["title"])
        return f"<table><caption>{title}</caption><tr>{head}</tr>{rows}</table>"
