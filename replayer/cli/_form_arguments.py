"""The arguments that ``report`` and ``compare`` have in common: the form, and where it goes."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path


def add_form_arguments(
    parser: argparse.ArgumentParser,
    forms: Iterable[str],
    suffixes: Mapping[str, str],
    details: str,
    more: str = "",
) -> None:
    """Declare the form of what is printed, which suffixes of files may choose, and those files."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        metavar="FORM",
        choices=tuple(forms),
        help=f"what to print: {', '.join(forms)} (default: screen){more}",
    )
    form.add_argument(
        "--details",
        dest="format",
        action="store_const",
        const="table",
        help=f"print {details}; same as --format table",
    )
    form.add_argument(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    )
    form.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one HTML page with charts to a new file; it ranks several targets or runs",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a new file instead of printing; its suffix selects the format "
        f"({', '.join(suffixes)}; otherwise a table)",
    )
