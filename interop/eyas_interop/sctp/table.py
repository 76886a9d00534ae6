"""The table at the end of a run, with cases as rows and peers as columns."""


def show(title: str, columns: list[str], cells: dict[tuple[str, str], str]) -> None:
    """Prints the table; a missing cell is a case that was not run."""
    rows = list(dict.fromkeys(row for row, _ in cells))
    if not rows:
        return
    width = max(len(title), *(len(row) for row in rows))
    widths = [max(len(column), 4) for column in columns]
    line = "  ".join(column.ljust(size) for column, size in zip(columns, widths))
    print(f"\n{title.ljust(width)}  {line}")
    for row in rows:
        found = [cells.get((row, column), "–") for column in columns]
        line = "  ".join(cell.ljust(size) for cell, size in zip(found, widths))
        print(f"{row.ljust(width)}  {line}".rstrip())
    print(flush=True)
