"""The documents for users, and the shell blocks in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND_LINE = ROOT / "docs/reference/command-line.md"
"""Made when the site is built."""
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page != COMMAND_LINE),
]
"""Some pages of docs/ are links to files that are shipped with the program."""
_BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```sh\n(?P<text>.*?)```", re.DOTALL)
_INPUT = re.compile(r"<<'(\w+)'(.*?)\n.*?\n\1\n", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
MARKS = re.compile(r"(sets up|tests|nightly: .+|not run: .+|)")
"""What may stand above a block: without a mark it runs with every test."""


@dataclass(frozen=True)
class Block:
    """A shell block, and what is said above it of running it."""

    page: Path
    mark: str
    text: str

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each call of replayer, without those who call it."""
        text = _INPUT.sub(r"\2\n", self.text).replace("\\\n", " ")
        for line in text.splitlines():
            for words in _split(line):
                while words and (words[0] == "sudo" or _ASSIGNED.match(words[0])):
                    words.pop(0)
                if words and Path(words[0]).name == "replayer":
                    yield words[1:]


def blocks(page: Path) -> list[Block]:
    """Return the shell blocks of a page."""
    found = _BLOCK.finditer(page.read_text())
    return [Block(page, match["mark"] or "", match["text"]) for match in found]


def name_of(page: Path) -> str:
    """Return a page's place in the repository."""
    return str(page.relative_to(ROOT))


def _split(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for token in lexer:
        if set(token) <= set("();<>|&"):
            yield words
            words = []
        else:
            words.append(token)
    yield words
