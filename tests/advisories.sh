#!/usr/bin/env bash
# Look for known holes, and for licences and sources that do not fit: crates with cargo-deny, Python packages with pip-audit.
# What is not installed, or cannot reach its database, is skipped with a word: a hole fails, a network does not.
#   advisories.sh MANIFEST     of the crates; deny.toml lies beside it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly UNREACHABLE='failed to (fetch|update|load)|could not (fetch|resolve)|unable to update|Connection|timed out|NameResolution|Max retries|dns error|network|index fetch'

# Run a check; what it says about an unreachable database is a reason to skip, everything else to fail.
audit() {
    local name=$1 log
    shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        if grep -q 'could not be audited' "$log"; then
            echo "$name: skipped, its database cannot be reached"
        else
            echo "$name: nothing found"
        fi
    elif grep -Eqi "$UNREACHABLE" "$log" && ! grep -Eq 'error\[|Found [0-9]+ known' "$log"; then
        echo "$name: skipped, its database cannot be reached"
    else
        cat "$log"
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

main() {
    local deny=(cargo deny --manifest-path "$1" --locked --config "$(dirname "$1")/deny.toml" check)
    if command -v cargo-deny >/dev/null; then
        # Licences, sources and bans need no database; advisories do.
        audit cargo-deny "${deny[@]}" bans licenses sources
        audit 'cargo-deny advisories' "${deny[@]}" advisories
    else
        echo "cargo-deny is not installed: skipped"
    fi
    if command -v pip-audit >/dev/null; then
        audit pip-audit pip-audit --requirement requirements.lock --require-hashes --disable-pip --progress-spinner off
    else
        echo "pip-audit is not installed: skipped"
    fi
}

main "$@"
