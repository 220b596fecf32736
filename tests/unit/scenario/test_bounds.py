"""What a plan cannot hold, or a dataset cannot be, is refused with its line."""

import pytest

from tests.unit.scenario.texts import changed, expect_refusal

AFTER_LOOK = "    - close\n  make"

BEYOND = {
    "half a character in a key": (
        changed("duration: 2s", '"\\ud800": 1\nduration: 2s'),
        "s.yaml:3: must be valid UTF-8, and has half of a surrogate pair",
        "",
    ),
    "think time of a file's size": (
        changed("count: 2", "count: 2, think_time: {size_of: file}"),
        "s.yaml:2: users.think_time size_of is not a distribution",
        "known distributions: uniform, lognormal, exponential, values, quantiles",
    ),
    "weight beyond the plan's": (
        changed("look: 9", "look: 5000000000"),
        "s.yaml:7: mix.look must be at most 4294967295, got 5000000000",
        "",
    ),
    "endless turns": (
        changed(
            AFTER_LOOK, f"    - repeat: {{times: {10**23}, steps: [fstat]}}\n    - close\n  make"
        ),
        "s.yaml:12: transactions.look[2].repeat.times must be at most 4611686018427387904",
        "",
    ),
    "rate of an avalanche": (
        changed("{count: 2}", "{count: 2}\narrivals: {rate: 1000000000000/s}"),
        "s.yaml:3: arrivals.rate must be from once a year to 1000000000/s",
        "",
    ),
    "read of 2 GiB": (
        changed("size: 64KiB, until", "size: 2GiB, until"),
        "s.yaml:11: transactions.look[1].read.size must be at most 1,073,741,824 for one call",
        "",
    ),
    "write of 1 TiB": (
        changed("{lognormal: {median: 300B, p95: 4KiB}}", "1TiB, block: 1TiB"),
        "s.yaml:15: transactions.make[1].write.block must be at most 17,179,865,088 for one call",
        "",
    ),
    "distribution without an end": (
        changed("{median: 300B, p95: 4KiB}", "{median: 1B, p95: 4TiB}"),
        "s.yaml:15: transactions.make[1].write.size must be at most 9,223,372,036,854,775,807",
        "",
    ),
    "file of 2 EiB": (
        changed("bytes: 100KB", "sizes: 2097152TiB"),
        "s.yaml:5: datasets.files.files gives d0/f0 2,305,843,009,213,693,952 bytes, more than",
        "",
    ),
    "two ways to open": (
        changed("[create, wronly]", "[rdwr, wronly]"),
        "s.yaml:14: transactions.make[0].open has the flags wronly and rdwr; give only one of them",
        "",
    ),
    "long attribute": (
        changed(AFTER_LOOK, f"    - setxattr: {{path: file, attribute: user.{'é' * 130}}}\n  make"),
        "s.yaml:12: transactions.look[2].setxattr.attribute must be at most 255 bytes, got 265",
        "",
    ),
    "blocks nested too deep": (
        changed(
            AFTER_LOOK,
            f"    - {'repeat: {times: 1, steps: [{' * 16}think: 1us{'}]}' * 16}\n{AFTER_LOOK}",
        ),
        "s.yaml:9: transactions.look must nest at most 15 blocks, got 16",
        "",
    ),
    "sequences that double each other": (
        changed(
            "transactions:\n",
            "sequences:\n"
            + "".join(f"  s{n}: [use: s{n + 1}, use: s{n + 1}]\n" for n in range(25))
            + "  s25: [think: 1us]\ntransactions:\n  double: [use: s0]\n",
        ),
        "s.yaml:36: transactions.double has 33,554,432 steps after sequences and names",
        "all transactions together may have 1,000,000",
    ),
    "a chain of sequences": (
        changed(
            "transactions:\n",
            "sequences:\n"
            + "".join(f"  s{n}: [use: s{n + 1}]\n" for n in range(3000))
            + "  s3000: [think: 1us]\ntransactions:\n",
        ),
        "s.yaml:9: sequences.s0 includes a chain of 32 or more sequences",
        "",
    ),
    "a chain of sequences, the last first": (
        changed(
            "transactions:\n",
            "sequences:\n  s0: [think: 1us]\n"
            + "".join(f"  s{n}: [use: s{n - 1}]\n" for n in range(1, 3000))
            + "transactions:\n",
        ),
        "s.yaml:41: sequences.s32 includes a chain of 32 or more sequences",
        "",
    ),
    "placeholder of a step in a dataset": (
        changed("per_directory: 5", 'names: "f{n}-{user}"'),
        "s.yaml:5: datasets.files.names has {user}, but only {n} is allowed",
        "",
    ),
    "link where a file is": (
        changed("per_directory: 5", "links: {f0: f1}"),
        "s.yaml:5: datasets.files.links: f0 is listed twice",
        "",
    ),
    "link below a file": (
        changed("per_directory: 5", "links: {f0/x: f1}"),
        "s.yaml:5: datasets.files.links: f0/x is below f0, which is not a directory",
        "",
    ),
    "name that random digits make too long": (
        changed("f{seq}", "x" * 248 + "{random}"),
        "s.yaml:14: transactions.make[0].open.name (xxxxx",
        "",
    ),
    "no entries at all": (
        changed("{from: files, pick: uniform}", "{from: work, kind: any}"),
        "s.yaml:10: transactions.look[0].open.from picks from work, which has no entry",
        "",
    ),
}


@pytest.mark.parametrize("mistake", BEYOND)
def test_what_is_beyond_a_plan_is_refused_with_its_line(mistake: str) -> None:
    expect_refusal(*BEYOND[mistake])
