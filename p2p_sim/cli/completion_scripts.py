"""Scripts for bash, zsh and fish that complete what is typed after ``p2p-sim``: all words are in them, nothing is run.

So TAB answers at once; an update of the package, or a new package of protocols, needs a new script.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from p2p_sim.cli.known_words import Option, Place, Taken, values

Protocols = Mapping[str, Sequence[Option]]

_FILES = "<files>"  # stands among words where the name of a file may stand

_BASH = r"""
_p2p_sim() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} word
    local place=${COMP_WORDS[1]} first=2 protocol= found
    COMPREPLY=()
    if [[ $cur == = ]]; then cur=
    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    if (( COMP_CWORD > 2 )) && [[ -n $(_p2p_sim_words "$place ${COMP_WORDS[2]}" --options) ]]; then
        place="$place ${COMP_WORDS[2]}" first=3
    fi
    for word in "${COMP_WORDS[@]:first:COMP_CWORD-first}"; do
        [[ -n $(_p2p_sim_words protocol "$word") ]] && protocol=$word
    done
    if (( COMP_CWORD == 1 )); then found=$(_p2p_sim_words '' --rest)
    elif [[ $cur == -* ]]; then
        found="$(_p2p_sim_words "$place" --options) $(_p2p_sim_words protocol "$protocol")"
    elif [[ $prev == --* && -n $(_p2p_sim_words "$place" "$prev") ]]; then
        found=$(_p2p_sim_words "$place" "$prev")
    elif [[ -z $protocol ]]; then found=$(_p2p_sim_words "$place" --rest); fi
    COMPREPLY=($(compgen -W "${found//<files>/}" -- "$cur"))
    if [[ $found == *'<files>'* ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    fi
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _p2p_sim p2p-sim
"""

_ZSH = r"""
_p2p_sim() {
    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} place=${words[2]} first=3 protocol= found word
    if [[ $cur == --*=* ]]; then prev=${cur%%=*}; compset -P '*='; cur=${cur#*=}; fi
    if (( CURRENT > 3 )) && [[ -n $(_p2p_sim_words "$place ${words[3]}" --options) ]]; then
        place="$place ${words[3]}" first=4
    fi
    for word in ${words[first,CURRENT-1]}; do
        [[ -n $(_p2p_sim_words protocol "$word") ]] && protocol=$word
    done
    if (( CURRENT == 2 )); then found=$(_p2p_sim_words '' --rest)
    elif [[ $cur == -* ]]; then
        found="$(_p2p_sim_words "$place" --options) $(_p2p_sim_words protocol "$protocol")"
    elif [[ $prev == --* && -n $(_p2p_sim_words "$place" "$prev") ]]; then
        found=$(_p2p_sim_words "$place" "$prev")
    elif [[ -z $protocol ]]; then found=$(_p2p_sim_words "$place" --rest); fi
    compadd -- ${=found//<files>/}
    [[ $found == *'<files>'* ]] && _files
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _p2p_sim "$@"
elif (( $+functions[compdef] )); then compdef _p2p_sim p2p-sim; fi
"""


def bash(places: Sequence[Place], protocols: Protocols) -> str:
    """Return the script for bash, 3.2 and later."""
    return (
        "# Completion of p2p-sim for bash, written by: p2p-sim completion bash\n"
        + _table(places, protocols)
        + _BASH
    )


def zsh(places: Sequence[Place], protocols: Protocols) -> str:
    """Return the script for zsh, to be sourced after compinit, or kept as the file _p2p-sim of a folder in fpath."""
    head = "#compdef p2p-sim\n# Completion of p2p-sim for zsh, written by: p2p-sim completion zsh\n"
    return head + _table(places, protocols) + _ZSH


def _table(places: Sequence[Place], protocols: Protocols) -> str:
    """Return a function of the shell that prints the words of a place, after an option or as options."""
    cases = [("", "--rest", [place.name for place in places if " " not in place.name])]
    for place in places:
        cases.append((place.name, "--options", [each.name for each in place.options]))
        cases.append((place.name, "--rest", _words(place.takes, protocols)))
        # an option with a value of which nothing is known prints a space, so that no other word is offered
        cases += [(place.name, name, _words(takes, protocols) or [" "]) for name, takes in values(place)]
    cases += [("protocol", name, [each.name for each in own] or [" "]) for name, own in protocols.items()]
    lines = [
        f"        {shlex.quote(f'{place}:{what}')}) printf '%s\\n' {shlex.quote(' '.join(words))};;"
        for place, what, words in cases
        if words
    ]
    return "\n".join(["_p2p_sim_words() {", '    case "$1:$2" in', *lines, "    esac", "}"])


def _words(takes: Taken, protocols: Protocols) -> list[str]:
    return [*takes.words, *(protocols if takes.protocol else ()), *([_FILES] if takes.files else [])]


def fish(places: Sequence[Place], protocols: Protocols) -> str:
    """Return the script for fish: a line for each verb, option and parameter."""
    lines = [
        "# Completion of p2p-sim for fish, written by: p2p-sim completion fish",
        "complete -c p2p-sim -f",
    ]
    verbs = [place for place in places if " " not in place.name]
    for place in verbs:
        lines.append(_line("__fish_use_subcommand", f"-a {place.name}", place.help))
    for place in places:
        at = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in place.name.split())
        rest = [*place.takes.words, *(protocols if place.takes.protocol else ())]
        if rest:
            lines.append(_line(f"{at}; and not __fish_seen_subcommand_from {' '.join(rest)}", _offers(rest)))
        if place.takes.files:
            lines.append(_line(at, "-F"))
        lines += [_option(at, each) for each in place.options]
    takers = " ".join(place.name for place in verbs if place.takes.protocol)
    for name, own in protocols.items():
        at = f"__fish_seen_subcommand_from {takers}; and __fish_seen_subcommand_from {name}"
        lines += [_option(at, each) for each in own]
    return "\n".join(lines) + "\n"


def _option(at: str, option: Option) -> str:
    long = f"-l {option.name.removeprefix('--')}"
    takes = option.takes
    if takes is None:
        return _line(at, long, option.help)
    words = f" {_offers(takes.words)}" if takes.words else ""
    return _line(at, f"{long} {'-r -F' if takes.files else '-x'}{words}", option.help)


def _offers(words: Iterable[str]) -> str:
    return f"-a {_quoted(' '.join(words))}"


def _line(condition: str, what: str, help: str = "") -> str:
    description = f" -d {_quoted(help)}" if help else ""
    return f"complete -c p2p-sim -n {_quoted(condition)} {what}{description}"


def _quoted(text: str) -> str:
    """Quote for fish, which knows a backslash inside single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
