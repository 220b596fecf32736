"""Documents are short sentences, their links lead somewhere, and their commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from replayer.cli import parse_words
from replayer.cli._parsers import EXIT_CODES, KNOWN
from replayer.report.document import Document
from replayer.run.metrics import Meter
from tests.documents import COMMAND_LINE, MARKS, PAGES, ROOT, Block, blocks, name_of

MAX_LINE = 120
MAX_SENTENCE = 30
MAX_README = 1200
WRITTEN = [page for page in PAGES if page != ROOT / "ARCHITECTURE.md"]
BLOCKS = [block for page in PAGES for block in blocks(page)]

_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"\$\(.*\)|\$\w+")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")


def _prose(page: Path) -> list[str]:
    """Return the lines of a page that are no code, table, heading or comment."""
    lines = _CODE.sub("", page.read_text()).splitlines()
    return ["" if line.startswith(("|", "#", "<!--", "    ")) else line for line in lines]


def _sentences(page: Path) -> list[str]:
    """Return the sentences of a page; an item of a list is one, too."""
    text = "\n".join(_prose(page))
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    text = _LINK.sub(r"\1", text)
    parts = [
        part
        for paragraph in text.split("\n\n")
        for part in re.split(r"[.!?]\*{0,2}\s", paragraph + " ")
    ]
    return [" ".join(part.split()) for part in parts]


@pytest.mark.parametrize("page", WRITTEN, ids=map(name_of, WRITTEN))
def test_no_line_is_longer_than_120_characters(page: Path) -> None:
    assert [line for line in _prose(page) if len(line) > MAX_LINE] == []


@pytest.mark.parametrize("page", WRITTEN, ids=map(name_of, WRITTEN))
def test_no_sentence_has_more_than_30_words(page: Path) -> None:
    assert [text for text in _sentences(page) if len(text.split()) > MAX_SENTENCE] == []


def test_the_readme_is_a_page() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= MAX_README


@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for _, address in _LINK.findall(_CODE.sub("", page.read_text())):
        place, _, heading = address.partition("#")
        if "://" in place:
            continue
        to = Path(*(page.parent / place).parts) if place else page
        assert to.exists() or to.resolve() == COMMAND_LINE, address
        assert not heading or heading in _anchors(to), address


def _anchors(page: Path) -> set[str]:
    """Return the names of a page's headings in addresses."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in headings}


@pytest.mark.parametrize(
    "block",
    BLOCKS,
    ids=[f"{name_of(block.page)}: {block.text.splitlines()[0]}" for block in BLOCKS],
)
def test_every_command_of_a_block_exists(block: Block) -> None:
    assert MARKS.fullmatch(block.mark), block.mark
    for words in block.commands():
        parse_words([_VARIABLE.sub("1", word) for word in words])


def test_every_command_stands_in_a_document() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    assert [name for name in KNOWN if f"replayer {name}" not in pages] == []


def test_the_page_on_the_command_line_has_every_command_and_option() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/command_line.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    headings = re.findall(r"^## replayer (.*)$", done.stdout, re.MULTILINE)
    assert headings == [*KNOWN]
    assert done.stdout.count("usage: ") == len(headings) + 1


def _first_cells(page: str) -> set[str]:
    """Return the names in the first column of a page's tables."""
    lines = (ROOT / "docs/reference" / page).read_text().splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| ")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_on_metrics_has_each_of_them() -> None:
    counted = {"counter": "_total"}
    served = {each.name + counted.get(each.type, "") for each in Meter().collect()}
    assert _first_cells("metrics.md") == served


def test_the_page_on_run_folders_names_files_and_keys_that_there_are() -> None:
    named = {name for name in _first_cells("run-folder.md") if "." not in name}
    assert named <= {*Document.model_fields}


def test_the_page_on_exit_codes_has_each_of_them() -> None:
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == [*EXIT_CODES]
