"""What verifying found, in words."""

from replayer.measure import Verification, format_bytes, format_count

__all__ = ["describe_verification"]

NS_PER_S = 1e9


def describe_verification(found: Verification) -> str:
    """Return how much was checked, what was wrong and what it cost, in one line."""
    kinds = found.wrong_blocks.model_dump()
    bad = ", ".join(f"{format_count(count)} {kind}" for kind, count in kinds.items() if count)
    price = "" if found.ns_per_byte is None else f", {found.ns_per_byte:.2f} ns a byte"
    mixed = f", {format_bytes(found.mixed_bytes)} written meanwhile" if found.mixed_bytes else ""
    blind = "; names became unclear, and nothing was claimed from then on" if found.blind else ""
    return (
        f"{format_count(found.reads)} reads: {format_bytes(found.verified_bytes)} checked, "
        f"{format_bytes(found.unverified_bytes)} not{mixed}; wrong blocks: {bad or 'none'}; "
        f"{found.time_ns / NS_PER_S:.3g} s of all users{price}, in no latency{blind}"
    )
