"""A shared trace makes the same calls, and has no name of the one that it was made from."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from replayer import _native
from replayer.cli import main
from replayer.trace.errors import TraceError
from replayer.trace.importing import ImportOptions, Window, import_trace
from replayer.trace.reading import load_statistics, load_trace
from replayer.trace.sharing import load_key, make_key, private_parts, share_trace

TRACES = Path(__file__).parents[3] / "traces"
KEY = bytes(range(32))
SECRETS = ("canary", "miller", "acme", "zebra")
CALLS = """\
openat(AT_FDCWD, "/srv/acme/site/canary-1.miller", O_RDONLY) = 3
read(3, ""..., 100) = 100
close(3) = 0
symlink("/srv/acme/site/zebra/canary", "/srv/acme/site/link-zebra") = 0
chown("/srv/acme/site/canary-1.miller", 4711, 4712) = 0
setxattr("/srv/acme/site/canary-1.miller", "user.canary", "x", 1, 0) = 0
rename("/srv/acme/site/canary-1.miller", "/srv/acme/site/zebra.jpg") = 0
stat("/srv/acme/site/canary/missing", 0x7ffc) = -1 ENOENT (No such file)
"""
LOG = "".join(
    f"7 1795223203.3700{number}0 {call} <0.000010>\n"
    for number, call in enumerate(CALLS.splitlines())
)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    log = tmp_path / "acme-canary.log"
    log.write_text(f"{LOG}a line of acme that nobody understands\n")
    begin = 1795223203_000000000
    options = ImportOptions(
        roots=[Path("/srv/acme/site")],
        windows=[Window(begin, begin + 10**9, "/canary?user=miller")],
        note="from canary, by miller",
    )
    import_trace([log], tmp_path / "private", options)
    return tmp_path / "private"


def texts_of(folder: Path) -> bytes:
    """Return all that a trace says: its files as they are, and its tables unpacked."""
    paths, links, texts, labels, owners = _native.trace_names(str(folder))
    unpacked = [*paths, *(link for _, link in links), *(text for *_, text in texts)]
    told = [*unpacked, *(label.encode() for label in labels), str(owners).encode()]
    return b"\n".join([*told, *(file.read_bytes() for file in folder.iterdir())])


def test_nothing_private_is_in_any_byte(private: Path, tmp_path: Path) -> None:
    before = texts_of(private)
    assert all(secret.encode() in before for secret in SECRETS)
    share_trace(private, tmp_path / "public", KEY)
    after = texts_of(tmp_path / "public")
    assert not [secret for secret in SECRETS if secret.encode() in after.lower()]
    assert b"4711" not in after
    assert b"1795223203" not in after
    assert b".jpg" in after


def comparable(folder: Path) -> dict[str, Any]:
    found = load_statistics(folder)
    labels = ({**each, "label": ""} for each in found["labels"])
    found["labels"] = sorted(json.dumps(each, sort_keys=True) for each in labels)
    return found


@pytest.mark.parametrize(
    "name", ["php/sessions", "wordpress/deploy-rsync", "wordpress/page-cache-miss", "linux/untar"]
)
def test_calls_results_times_and_order_are_the_same(name: str, tmp_path: Path) -> None:
    shared = share_trace(TRACES / name, tmp_path / "public", KEY)
    assert shared.unordered == 0
    assert comparable(tmp_path / "public") == comparable(TRACES / name)
    old, new = load_trace(TRACES / name), load_trace(tmp_path / "public")
    for part in ("edges_by_reason", "events", "errors", "span_ns", "threads", "paths"):
        assert new["counts"][part] == old["counts"][part]
    columns, paths = _native.trace_events(str(tmp_path / "public"))
    old_columns, old_paths = _native.trace_events(str(TRACES / name))
    assert columns == old_columns
    assert [label for _, label in paths] == [label for _, label in old_paths]


def test_two_shares_have_no_name_in_common(tmp_path: Path) -> None:
    for number in range(2):
        share_trace(TRACES / "php/sessions", tmp_path / f"{number}", make_key(None))
    first, second = (
        {
            part
            for path in _native.trace_names(str(tmp_path / f"{number}"))[0]
            for part in path.split(b"/")
        }
        for number in range(2)
    )
    assert len(first & second) <= len(first) / 100


def test_a_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    assert load_key(tmp_path / "key") == key
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(TraceError, match="cannot be written"):
        make_key(tmp_path / "key")
    (tmp_path / "key").write_text("not one\n")
    with pytest.raises(TraceError, match="holds no key"):
        load_key(tmp_path / "key")
    with pytest.raises(TraceError, match="cannot be read"):
        load_key(tmp_path / "lost")


def test_what_a_trace_gives_away_is_told(private: Path) -> None:
    kinds = private_parts(private).kinds
    assert kinds["requests"] == (1, ("/canary?user=miller",))
    assert kinds["attributes"] == (1, ("user.canary",))
    assert kinds["users and groups"][0] == 2
    assert kinds["lines of its log"][1] == ("a line of acme that nobody understands",)
    assert "canary" in str(kinds["names of files and directories"])


def test_the_command_tells_what_it_changed_and_writes_over_nothing(
    private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "share",
        str(private),
        "-o",
        str(tmp_path / "public"),
        "--new-key",
        str(tmp_path / "k"),
    ]
    assert main(words) == 0
    assert "names changed" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "public"), "--private"]) == 0
    assert "canary" not in capsys.readouterr().out
    assert main([*words[:4], "--key", str(tmp_path / "k")]) == 2
    assert "exists" in capsys.readouterr().err
    assert (
        main(["share", str(private), "-o", str(tmp_path / "again"), "--key", str(tmp_path / "k")])
        == 0
    )
    names = [_native.trace_names(str(tmp_path / each)) for each in ("public", "again")]
    assert names[0] == names[1]
