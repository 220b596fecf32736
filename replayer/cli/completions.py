"""``replayer completions``: what a shell offers after TAB, made of the same parsers as the help.

The script holds all names itself: a completion starts no program of ours.
"""

import argparse
import re
from collections.abc import Iterable, Mapping
from string import Template

import shtab

from replayer.cli._parsers import KNOWN, ProgramParser
from replayer.cli.runs import NAMING
from replayer.fio.jobs import shipped_jobs
from replayer.measure.history import KEPT
from replayer.measure.runfolder import PARENT
from replayer.scenario.shipped import shipped_scenarios
from replayer.study.model import load_studies
from replayer.trace.shipped import shipped_traces

SHELLS = ("bash", "zsh", "fish")
INSTALL = """\
Write the script to the file where your shell looks for it. Write it
again after each update of replayer.

  bash  ~/.local/share/bash-completion/completions/replayer
  zsh   _replayer in a folder of $fpath, before compinit runs
  fish  ~/.config/fish/completions/replayer.fish
"""

Offer = Mapping[str, str | Mapping[str, str]]
"""What shtab takes: the function to call, by shell, and under 'preamble' the functions."""

NAMES = {
    "bash": """
_replayer_${kind}_file() {
  compgen -W "${names}" -- "$$1"
  compgen -f -X '!*${suffix}' -- "$$1"
  compgen -d -- "$$1"
}
""",
    "zsh": """
_replayer_${kind}_file() {
  compadd -- ${names}
  _files -g '*${suffix}'
}
""",
    "fish": r"""
function _replayer_${kind}_file
  printf '%s\n' ${names}
  __fish_complete_path (commandline -ct) | string match -r '^[^\t]*(?:/|${suffix})(?:\t.*)?$$'
end
""",
}
"""Offer names that come with the program, and files of one's own."""

RUNS = {
    "bash": r"""
_replayer_run_dir() {
  local runs="$$(compgen -d -- ${folder}/)"
  local kept="$$(sed -n '${pick}' ${folder}/${kept} 2>/dev/null)"
  compgen -W "latest $${runs//${folder}\//} $$kept" -- "$$1"
  compgen -d -- "$$1"
}
""",
    "zsh": r"""
_replayer_run_dir() {
  local -a kept=($${(f)"$$(sed -n '${pick}' ${folder}/${kept} 2>/dev/null)"})
  compadd -- latest ${folder}/*(N/:t) $$kept
  _files -/
}
""",
    "fish": r"""
function _replayer_run_dir
  set -l runs ${folder}/*/
  string replace -r '.*/(.+)/$$' '$$1' -- latest $$runs
  sed -n '${pick}' ${folder}/${kept} 2>/dev/null
  __fish_complete_directories
end
""",
}
"""Offer the runs of the folder where runs put them, by what the program knows them by."""
PICK_NAMES = r's/^ *"\([^"]*\)": .*/\1/p'
"""The command of sed that picks the names out of that file, which has one a line."""

TARGETS = {
    "bash": """
_replayer_target_dir() {
  local last="$${1##*[=,]}"
  local before="$${1%"$$last"}"
  compgen -P "$${before##*=}" -d -- "$$last"
}
""",
    "zsh": """
_replayer_target_dir() {
  compset -P '*[=,]'
  _files -/
}
""",
    "fish": """
function _replayer_target_dir
  set -l word (commandline -ct)
  set -l before (string match -r -- '^.*[=,]' $$word)
  for folder in (__fish_complete_directories (string replace -- "$$before" '' $$word))
    echo "$$before$$folder"
  end
end
""",
}
"""Offer folders after NAME= and after a comma."""

BASH_WORDS = r"""

# Bash splits words at '=', replayer does not: NAME=PATH is one word, --option=VALUE two.
_replayer() {
  local -a words=()
  local word glued=0
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ $word == = && ${words[-1]} == --* ]]; then
      words+=("")
      glued=1
    elif [[ $word == = ]]; then
      words[-1]+==
      glued=1
    elif ((glued)); then
      words[-1]+=$word
      glued=0
    else
      words+=("$word")
    fi
  done
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$((${#words[@]} - 1))
  _shtab_replayer
}

complete -o bashdefault -F _replayer replayer"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = INSTALL
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    parser = ProgramParser(KNOWN)
    offers = _offers()
    for command in parser.commands.values():
        for action in command._actions:  # noqa: SLF001 - it has no public view
            word = f"{'-' * bool(action.option_strings)}{action.metavar}"
            offer = offers.get(word, offers.get(str(action.metavar)))
            if offer is not None:
                action.complete = offer  # type: ignore[attr-defined]
    print(_mended(shtab.complete(parser, arguments.shell), arguments.shell))
    return 0


def _mended(script: str, shell: str) -> str:
    """Return a script of shtab's with what it does not have."""
    if shell == "zsh":  # only the first of several words is completed there
        return re.sub(r'"\(\*\)::?', '"*:', script)
    return f"{script}{BASH_WORDS}" if shell == "bash" else script


def _offers() -> dict[str, Offer]:
    """Return what is offered for a word of the help; with a dash: as the value of an option."""
    studies = [name for study in load_studies() for name in (study.letter, study.name)]
    runs = _functions("run_dir", RUNS, folder=str(PARENT), pick=PICK_NAMES, kept=KEPT)
    targets = _functions("target_dir", TARGETS)
    return {
        "SCENARIO": _names("scenario", shipped_scenarios(), ".yaml"),
        "TRACE": _names("trace", shipped_traces(), "/"),
        "-TRACE": shtab.DIRECTORY,
        "JOB": _names("job", shipped_jobs(), ".fio"),
        "NAME": _names("study", studies, ".yaml"),
        "RUN": runs,
        "-NAME": runs,
        NAMING: runs,
        "FILE": shtab.FILE,
        "DIR": shtab.DIRECTORY,
        "PATH": shtab.DIRECTORY,
        "[NAME=]PATH": targets,
        "[NAME=]PATH[,PATH…]": targets,
        "[NAME=]DIR[,DIR…]": targets,
        "[PID=]DIR": targets,
        "[NAME=]DEVICE": shtab.FILE,
        "DEVICE": shtab.FILE,
    }


def _names(kind: str, names: Iterable[str], suffix: str) -> Offer:
    return _functions(f"{kind}_file", NAMES, kind=kind, names=" ".join(names), suffix=suffix)


def _functions(name: str, texts: Mapping[str, str], **values: str) -> Offer:
    call = f"_replayer_{name}"
    made = {shell: Template(text).substitute(values) for shell, text in texts.items()}
    return {"bash": call, "zsh": call, "fish": f"({call})", "preamble": made}
