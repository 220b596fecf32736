#!/usr/bin/env bash
# Install what the tests need, build the engine, run every check and test.
#
#     tests/run.sh            checks and tests, in less than 10 minutes on two cores
#     tests/run.sh nightly    what takes longer: the first command on a fresh copy, browser, fleets, mounts, faults
#
# Needs Debian or Ubuntu with Python 3.11 or later, as root or with sudo. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGES=(python3-venv gcc libc6-dev e2fsprogs fio strace openssl)
# For the nightly tests; those that need what cannot be had are skipped.
readonly MOUNTS=(sshfs openssh-server openssh-client python3-fusepy faketime)
readonly SHELLS=(zsh fish man-db mandoc groff)
readonly EMULATION=(qemu-system-x86 busybox-static)
readonly BROWSERS=(chromium firefox-esr) # of Debian
readonly MINIMUM_RUST=88 # as in Cargo.toml
readonly LATEST_RUST=95 # that the code was linted with: newer ones know more lints, and building alone does not mind

say() { printf '\n== %d s: %s\n' "$SECONDS" "$*"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || echo "$package"
    done
}

install_packages() {
    local missing
    command -v dpkg-query >/dev/null || { echo "not Debian or Ubuntu: install ${PACKAGES[*]} yourself"; return; }
    mapfile -t missing < <(missing_packages "${PACKAGES[@]}")
    if [ "${#missing[@]}" != 0 ]; then
        say "packages: ${missing[*]}"
        install_debian "${missing[@]}"
    fi
    [ "${1:-}" = nightly ] || return 0
    install_if_there "${MOUNTS[@]}"
    install_if_there "${SHELLS[@]}"
    install_if_there "${EMULATION[@]}"
    local browser
    for browser in "${BROWSERS[@]}"; do
        command -v "$browser" >/dev/null || install_debian "$browser" || say "no $browser: the tests that need it are skipped"
    done
}

install_if_there() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" = 0 ] || install_debian "${missing[@]}" || say "no ${missing[*]}: the tests that need them are skipped"
}

install_debian() {
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# pip brings uv, which brings the rest in a fifth of the time; pip does it where only pip knows the way to an index.
install_python() {
    say "Python packages, with their hashes"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    awk '/^uv==/ { it = 1 } it; it && !/\\$/ { exit }' requirements-dev.lock >.venv/uv.lock
    .venv/bin/python -m pip install --quiet --require-hashes -r .venv/uv.lock
    .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes -r requirements-dev.lock ||
        .venv/bin/python -m pip install --quiet --require-hashes -r requirements-dev.lock
}

has_rust() {
    local minor
    command -v cargo >/dev/null && command -v rustc >/dev/null || return 1
    minor=$(rustc --version | sed -E 's/^rustc 1\.([0-9]+)\..*/\1/')
    [ "$minor" -ge "$MINIMUM_RUST" ] && [ "$minor" -le "$LATEST_RUST" ]
}

# Rust as maturin would fetch it, in the user's cache; PATH and the rest come from what it prints.
install_rust() {
    has_rust || {
        say "Rust"
        # What it installs prints lines before the environment; a JSON document begins with a brace.
        eval "$(.venv/bin/python -m puccinialin | sed -n '/^{/,$p' | .venv/bin/python -c \
            'import json, shlex, sys; [print(f"export {k}={shlex.quote(v)}") for k, v in json.load(sys.stdin)["env"].items()]')"
        export RUSTUP_TOOLCHAIN="1.$LATEST_RUST.0"
        rustup toolchain install --profile minimal "$RUSTUP_TOOLCHAIN"
    }
    cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt
}

# On a CI machine one profile for the module and the tests of Rust, so that dependencies are compiled once; and what
# compiles them lints them, so that nothing is looked at twice.
build_engine() {
    say "engine"
    if [ -n "${CI:-}" ]; then
        export CARGO_PROFILE=ci
        MATURIN_PEP517_ARGS=--profile=ci
        MATURIN_PEP517_ARGS+=" --config=profile.ci.package.replayer-engine.opt-level=1"
        MATURIN_PEP517_ARGS+=" --config=profile.ci.package.replayer-trace.opt-level=1"
        export MATURIN_PEP517_ARGS
        RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
        export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
    fi
    .venv/bin/just build
}

# Print what a lane of its own has printed, and fail if it has failed.
join() {
    local lane=$1 log=$2 code=0
    wait "$lane" || code=$?
    cat "$log"
    return "$code"
}

main() {
    install_packages "${1:-}"
    install_python
    if [ "${1:-}" = nightly ]; then
        install_rust
        build_engine
        .venv/bin/just nightly
        return
    fi
    local logs code=0
    logs=$(mktemp -d)
    nice -n 19 .venv/bin/just rewrite check-python >"$logs/python" 2>&1 &
    local python=$!
    install_rust
    build_engine
    say "checks and tests of Rust beside the tests of Python"
    nice -n 19 .venv/bin/just check-rust >"$logs/rust" 2>&1 &
    local rust=$!
    .venv/bin/just all || code=$?
    say "checks of Python"
    join "$python" "$logs/python" || code=$?
    say "checks and tests of Rust"
    join "$rust" "$logs/rust" || code=$?
    rm -r "$logs"
    say "exit code $code"
    return "$code"
}

main "$@" </dev/null
