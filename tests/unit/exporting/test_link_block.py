"""Links of a page in files: blocks of rows are the same as single rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.exporting import formats
from orbweaver.exporting.link_block import LinkBlock
from orbweaver.model.columns import LINKS
from orbweaver.parsing.link_rows import LinkRows
from tests.unit.export_stage import page
from tests.unit.exporting.reading import READERS

HOST = "https://example.org"
PLAIN = LinkRows(kinds="aa", targets=(f"{HOST}/b", f"{HOST}/c"), texts=("b", ""))
ROWS = {
    "plain": PLAIN,
    "without texts": LinkRows(kinds="x", targets=(f"{HOST}/b",)),
    "mixed texts": LinkRows(kinds="ia", targets=PLAIN.targets, texts=(None, '"two"\x7f\u2028')),
    "line ends": LinkRows(kinds="aa", targets=PLAIN.targets, texts=("a\\n\x85b", "\\")),
    "lines": LinkRows(kinds="aa", targets=("a\nb\x00", "\ud800"), texts=("\n", "\U0001f600")),
    "marks": LinkRows(
        kinds="aahc",
        targets=(*PLAIN.targets, "http://[bad\\", f"{HOST}/d"),
        texts=("b", "c", None, None),
        fragments=(None, 'say "x"', None, "y"),
        rel={"alternate": [2], 'a"b': [0]},
        lang={"de": [2]},
        spellings={f"{HOST}:443/b": [0]},
        decisions={"invalid": [2], "out_of_scope": [0, 3]},
    ),
    "many": LinkRows(kinds="x" * 5_100, targets=tuple(f"{HOST}/{n}" for n in range(5_100))),
}


@pytest.mark.parametrize("name", formats.NAMES)
@pytest.mark.parametrize("rows", ROWS)
def test_file_of_blocks_equals_file_of_rows(name: str, rows: str, tmp_path: Path) -> None:
    block = LinkBlock(page(1), ROWS[rows])
    together = formats.writer(name, LINKS, tmp_path)
    together.add_block(block)
    alone = formats.writer(name, LINKS, tmp_path)
    for cells in block.cells():
        alone.add(cells)
    made, wanted = together.close(), alone.close()
    assert made.rows == wanted.rows == block.number
    if name != "parquet":
        assert made.path.read_bytes() == wanted.path.read_bytes()
    for read in READERS[name].values():
        assert read(LINKS, made.path) == read(LINKS, wanted.path)
