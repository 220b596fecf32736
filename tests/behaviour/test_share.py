"""A trace that is given away is replayed as the one that it was made from."""

import pytest

from tests.behaviour.shell import Shell


@pytest.mark.parametrize("trace", ["wordpress/login", "wordpress/theme-install", "php/sessions"])
def test_a_shared_trace_is_replayed_with_the_same_results(shell: Shell, trace: str) -> None:
    shared = shell.run("share", trace, "-o", "public", "--keep-known", "wordpress")
    assert shared.code == 0, shared.err
    target = shell.target()
    replays = [
        shell.run("replay", name, f"--target=here={target}", "--speed", "10", "--json")
        for name in (trace, "public")
    ]
    one, other = (done.document()["replay"]["results"] for done in replays)
    assert other["diverged"] == []
    assert other["compared"] == other["matched"] == one["matched"] > 0
    assert [other[each] for each in ("performances", "events")] == [
        one[each] for each in ("performances", "events")
    ]
