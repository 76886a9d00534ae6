"""The table of all runs, read with the libraries that support it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from sweep import lab
from test_lab import MINE

import eyas.lab

Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> eyas.lab.Result:
    """A result with nulls: in so short a time, no data arrives on most of the streams."""
    short = {"time.duration": "1 ms", "application.streams": 16}
    result = eyas.lab.run(MINE, set=short, out=tmp_path_factory.mktemp("table"))
    assert None in columns(result)["value"]
    return result


def columns(result: eyas.lab.Result) -> Columns:
    return dict(result._native.columns())


def test_a_tidy_table(tmp_path: Path) -> None:
    result = eyas.lab.run(MINE, out=tmp_path)
    table = columns(result)
    keys = list(zip(*(table[name] for name in ("x", "seed", "measure", "unit")), strict=True))
    assert len(set(keys)) == len(keys) == len(result.to_arrow())
    rates = [key for key in keys if key[2] == "throughput"]
    assert rates == [(x, seed, "throughput", "Mbit/s") for x in (8.0, 64.0) for seed in (1, 2)]


def test_arrow_without_a_copy(result: eyas.lab.Result) -> None:
    nanoarrow: Any = importlib.import_module("nanoarrow")
    table = result.to_arrow()
    # It can be read repeatedly, and a stream may remain unread.
    for _ in range(3):
        table.__arrow_c_stream__()
        array = nanoarrow.Array(table)
        named = {field.name: field for field in array.schema.fields}
        assert named["value"].nullable and not named["seed"].nullable
        read = {
            name: array.child(place).to_pylist() for place, name in enumerate(columns(result))
        }
        assert read == columns(result)
    # Extracted columns outlive the table.
    seeds = array.child(4)
    del array, table
    assert seeds.to_pylist() == columns(result)["seed"]


def test_pandas(result: eyas.lab.Result) -> None:
    pandas: Any = importlib.import_module("pandas")
    frame = result.to_pandas()
    assert list(frame.columns) == list(columns(result))
    for name, values in columns(result).items():
        there = frame[name].astype(object)
        assert there.where(there.notna(), None).tolist() == values
    if hasattr(pandas.DataFrame, "from_arrow"):
        taken = pandas.DataFrame.from_arrow(result.to_arrow())
        assert taken.seed.tolist() == columns(result)["seed"]
        assert taken.measure.tolist() == columns(result)["measure"]
        assert taken.value.sum() == frame.value.sum()


def test_polars(result: eyas.lab.Result) -> None:
    polars: Any = importlib.import_module("polars")
    frame = polars.DataFrame(result.to_arrow())
    assert frame.to_dict(as_series=False) == columns(result)
    assert frame.schema["seed"] == polars.UInt64


def test_pyarrow(result: eyas.lab.Result) -> None:
    pyarrow: Any = importlib.import_module("pyarrow")
    table = pyarrow.table(result.to_arrow())
    table.validate(full=True)
    assert table.to_pydict() == columns(result)


def test_duckdb(result: eyas.lab.Result) -> None:
    duckdb: Any = importlib.import_module("duckdb")
    runs = result.to_arrow()
    assert duckdb.sql("FROM runs").fetchall() == rows(result)
    assert len(runs) == len(rows(result))


def test_parquet(result: eyas.lab.Result, tmp_path: Path) -> None:
    pyarrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    duckdb: Any = importlib.import_module("duckdb")
    polars: Any = importlib.import_module("polars")
    path = tmp_path / "runs.parquet"
    result.to_parquet(path)
    table = parquet.read_table(path)
    table.validate(full=True)
    assert table.to_pydict() == columns(result)
    # The types and nullability are the same as over Arrow.
    arrow = pyarrow.table(result.to_arrow())
    assert table.schema.remove_metadata() == arrow.schema
    assert polars.read_parquet(path).to_dict(as_series=False) == columns(result)
    assert duckdb.sql(f"FROM '{path}'").fetchall() == rows(result)
    with pytest.raises(eyas.lab.LabError, match="nowhere"):
        result.to_parquet(tmp_path / "nowhere" / "runs.parquet")


def test_parquet_files_of_the_command(tmp_path: Path) -> None:
    plan = tmp_path / "mine.toml"
    plan.write_text(eyas.lab.load(MINE).text)
    here, there, parts = tmp_path / "here", tmp_path / "there", tmp_path / "part"
    eyas.lab.run(plan, out=here).to_parquet(tmp_path / "mine.parquet")
    lab("run", str(plan), "--format", "parquet", "--out", str(there))
    lab("run", str(plan), "--shard", "1/1", "--out", str(parts))
    lab("merge", str(parts), "--format", "parquet", "--out", str(here))
    expected = (tmp_path / "mine.parquet").read_bytes()
    for directory in (here, there):
        assert (directory / "runs.parquet").read_bytes() == expected
        assert (directory / "runs.csv").exists()


def rows(result: eyas.lab.Result) -> list[tuple[Any, ...]]:
    return list(zip(*columns(result).values()))
