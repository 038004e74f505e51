"""The values of the evidence: tables as CSV."""

from __future__ import annotations

from limner.imaging.evidence import Box, Table


def test_a_table_becomes_csv_without_formulas() -> None:
    rows = (
        ("Name", 'Note, "x"', "Change"),
        ("=SUM(A1)", "@cmd", "-12.50"),
        ("+1+1", "-cmd", "+3 %"),
        ("-", "", "-$5"),
    )
    box = Box(x=0, y=0, width=9, height=9)
    table = Table(rows=rows, header=True, box=box, row_boxes=(box,) * 4)
    assert table.csv == (
        'Name,"Note, ""x""",Change\n\'=SUM(A1),\'@cmd,-12.50\n\'+1+1,\'-cmd,+3 %\n-,,-$5\n'
    )
