"""What a comparison says against itself, and what its claims are worth."""

from pathlib import Path

import pytest

from replayer.report.comparing import compare
from replayer.report.comparison_text import render_comparison_markdown, render_comparison_table
from replayer.report.html import render_html
from replayer.report.json_form import render_comparison_json
from tests.unit.report.contenders import load, other_plan, write_run


def test_a_run_that_did_not_end_well_is_said_with_every_form(tmp_path: Path) -> None:
    well = load(write_run(tmp_path / "well", [1e6]))
    failed = load(
        write_run(tmp_path / "badly", [3e6], status="failed", failure="no space on device")
    )
    found = compare([well, failed])
    for text in ("badly: the run failed before its end", "badly: no space on device"):
        assert text in found.cautions
        for form in (
            render_comparison_table(found),
            render_comparison_json(found),
            render_comparison_markdown(found),
            render_html([well, failed]),
        ):
            assert text in " ".join(form.split())
    assert not any(text.startswith("well:") for text in found.cautions)


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_a_run_that_was_cut_short_is_said(tmp_path: Path, status: str) -> None:
    found = compare([load(write_run(tmp_path / "run", [1e6, 2e6], status=status))])
    assert any(text.startswith("run: the run") for text in found.cautions)


def test_every_claim_is_explained_where_runs_have_unequal_rounds(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / name, [level], rounds=rounds, plan=other_plan())
        for name, level, rounds in (("a", 1e6, 3), ("b", 5e6, 3), ("c", 25e6, 1))
    ]
    found = compare([load(folder) for folder in folders])
    said = {standing.claim for item in found.compared for standing in item.standings}
    assert {"differs", "differs, few rounds"} <= said
    for claim in ("differs", "differs, few rounds"):
        assert any(text.startswith(f"{claim}: ") for text in found.method)
