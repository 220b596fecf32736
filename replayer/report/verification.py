"""What verifying found, in words."""

from replayer.measure import (
    Verification,
    WrongBlocks,
    format_bytes,
    format_count,
    format_time_ns,
)

__all__ = ["describe_verification"]

NS_PER_S = 1e9


def describe_verification(found: Verification) -> str:
    """Return how much was checked, what was wrong and what it cost, in one line."""
    bad = _kinds(found.wrong_blocks)
    price = "" if found.ns_per_byte is None else f", {found.ns_per_byte:.2f} ns a byte"
    mixed = f", {format_bytes(found.mixed_bytes)} written meanwhile" if found.mixed_bytes else ""
    blind = "; names became unclear, and nothing was claimed from then on" if found.blind else ""
    return (
        f"{format_count(found.reads)} reads: {format_bytes(found.verified_bytes)} checked, "
        f"{format_bytes(found.unverified_bytes)} not{mixed}; wrong blocks: {bad}; "
        f"{format_time_ns(found.time_ns)} of all users{price}, in no call's time{blind}"
        f"{_last(found)}"
    )


def _kinds(blocks: WrongBlocks) -> str:
    kinds = blocks.model_dump()
    bad = ", ".join(f"{format_count(count)} {kind}" for kind, count in kinds.items() if count)
    return bad or "none"


def _last(found: Verification) -> str:
    last = found.last
    if last is None:
        return ""
    what = "names of files (those of one name count once)" if found.by_name else "files"
    checked = f"{format_bytes(last.verified_bytes)} checked, {format_bytes(last.unverified_bytes)}"
    cached = f", {format_bytes(last.cached_bytes)} of it from the client's page cache"
    amounts = {
        "of which nothing is certain": last.unclear_files,
        "left unread": last.left_files,
        "not to be read": last.failed_files,
        "whose fsync failed": last.unsynced_files,
    }
    others = "".join(f", {format_count(n)} {what}" for what, n in amounts.items() if n)
    first = next((f"; the first: {each.outcome} {each.path}" for each in last.wrong_files), "")
    return (
        f"; read back at the end: {format_count(last.files)} {what}, {checked} not"
        f"{cached if last.cached_bytes else ''}{others}; wrong blocks: "
        f"{_kinds(last.wrong_blocks)}{first}; {format_time_ns(last.took_s * NS_PER_S)}"
    )
