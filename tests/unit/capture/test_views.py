"""How processes in containers name the files of roots."""

from pathlib import Path

import pytest

from replayer.capture import views as views_of_captures
from replayer.capture.processes import ProcessState
from replayer.capture.roots import Root
from replayer.capture.views import Views, views_of
from replayer.measure.mountinfo import parse_mountinfo

HOST = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 8:2 /volumes /srv rw - xfs /dev/sdb1 rw
"""
CONTAINER = """\
90 80 0:70 / / rw - overlay overlay rw
91 90 8:2 /volumes/site /data rw - xfs /dev/sdb1 rw
92 90 8:2 /volumes/site/www /www rw - xfs /dev/sdb1 rw
93 90 8:2 /volumes/site /hidden rw - xfs /dev/sdb1 rw
94 93 0:71 / /hidden rw - tmpfs none rw
"""


def process(root: str, mounts: str, namespace: str = "mnt:[7]") -> ProcessState:
    return ProcessState(
        pid=7,
        process=7,
        command=(),
        cwd="/work",
        root=root,
        umask="",
        descriptors=(),
        mountinfo=mounts,
        namespace=namespace,
    )


NS = "/proc/7/ns/mnt"


def views(
    monkeypatch: pytest.MonkeyPatch, directories: tuple[str, ...], *states: ProcessState
) -> Views:
    monkeypatch.setattr(views_of_captures, "load_mountinfo", lambda: parse_mountinfo(HOST))
    monkeypatch.setattr(views_of_captures, "namespace_of", lambda _: "mnt:[1]")
    roots = [Root(name, Path(name), Path(name).name, "xfs") for name in directories]
    return views_of(roots, states)


@pytest.mark.parametrize(
    ("state", "directory", "names"),
    [
        (process("/", HOST, "mnt:[1]"), "/srv/site", []),
        (process("/", ""), "/srv/site", []),
        (process("/", HOST), "/srv/site", [f"{NS}/srv/site"]),
        (process("/", CONTAINER), "/srv/site", [f"{NS}/data"]),
        (process("/", CONTAINER), "/srv/site/www", [f"{NS}/data/www", f"{NS}/www"]),
        (process("/", CONTAINER), "/srv/other", []),
        (process("/", CONTAINER), "/home", []),
        (process("/srv/jail", ""), "/srv/jail/data", [f"{NS}/srv/jail/data"]),
        (process("/srv/jail", "", "mnt:[1]"), "/srv/jail", []),
    ],
)
def test_processes_elsewhere_know_roots_by_where_they_have_them_mounted(
    state: ProcessState, directory: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = views(monkeypatch, (directory,), state)
    assert found.aliases == {Path(name): Path(directory) for name in names}


def test_a_root_begins_where_the_process_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    jailed = process("/srv/jail", "", "mnt:[1]")
    found = views(monkeypatch, ("/srv/jail",), jailed, process("/", CONTAINER))
    places = [(view.root, view.mounts) for view in found.views]
    assert places == [(Path("/srv/jail"), None), (Path(NS), Path(NS))]
    assert [directory for _, directory in found.directories] == [Path("/work"), Path(f"{NS}/work")]


def test_two_containers_have_the_same_name_for_two_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    table = CONTAINER.replace("/volumes/site", "/volumes/shop")
    other = process("/", table, "mnt:[8]").model_copy(update={"pid": 8})
    found = views(monkeypatch, ("/srv/site", "/srv/shop"), process("/", CONTAINER), other)
    assert found.aliases == {
        Path(f"{NS}/data"): Path("/srv/site"),
        Path("/proc/8/ns/mnt/data"): Path("/srv/shop"),
    }
    assert {Path("/data"), Path("/srv/shop")} <= {*found.names}


def test_what_is_mounted_below_a_root_elsewhere_alone_covers_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = f"{CONTAINER}95 91 0:72 / /data/cache rw - tmpfs none rw\n"
    found = views(monkeypatch, ("/srv/site",), process("/", table))
    assert found.covers == [Path(f"{NS}/data/cache")]
