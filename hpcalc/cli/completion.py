"""Completion scripts for bash, zsh and fish, in the protocol of Click's own.

Click's scripts print an error when the program is absent, need bash 4.4, answer only every other TAB when zsh loads
them from its fpath, and lose the option when a value is typed as ``--option=value``; these do not. They are printed by
``_HPCALC_COMPLETE=bash_source hpcalc`` (zsh, fish alike) and stand, byte for byte the same, in ``completions/``. Only a
TAB loads this module.
"""

from __future__ import annotations

from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

__all__ = ["SCRIPTS", "register"]

_BASH = """\
# Completion of %(prog_name)s for bash 3.2 and later.

%(complete_func)s() {
    local program=${1/#\\~/$HOME} current=${COMP_WORDS[COMP_CWORD]}
    local IFS=$'\\n' word kind value prefix= glued= count=0
    local -a words
    COMPREPLY=()
    command -v -- "$program" >/dev/null 2>&1 || return 0

    # readline takes --option=value and a:b apart at = and :, so put them together again
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ $count -gt 0 && ( -n $glued || $word == [=:]* ) ]]; then
            words[count - 1]+=$word
        else
            words[count]=$word
            count=$((count + 1))
        fi
        [[ $word == [=:]* ]] && glued=1 || glued=
    done
    # where = does not break words the answer replaces the whole of --option=value
    [[ $current == --*=* ]] && prefix=${current%%%%=*}=

    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$prefix$value") ;;
            file) type compopt >/dev/null 2>&1 && compopt -o default ;;
            dir) type compopt >/dev/null 2>&1 && compopt -o dirnames ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((count - 1)) %(complete_var)s=bash_complete "$program" 2>/dev/null)
    return 0
}

# bash 4.4 brought nosort, bash 4.0 compopt; before that every empty answer means file names
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
    complete -o nosort -F %(complete_func)s %(prog_name)s
elif ((BASH_VERSINFO[0] >= 4)); then
    complete -F %(complete_func)s %(prog_name)s
else
    complete -o default -F %(complete_func)s %(prog_name)s
fi
"""

_ZSH = """\
#compdef %(prog_name)s
# Completion of %(prog_name)s for zsh.

_%(prog_name)s() {
    local program=${words[1]/#\\~/$HOME} kind value help
    local -a response plain described
    whence -p -- $program >/dev/null 2>&1 || return 1

    response=("${(@f)$(COMP_WORDS="${(F)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \\
        %(complete_var)s=zsh_complete $program 2>/dev/null)}")
    # after --option= only the value is completed
    compset -P '--*='

    for kind value help in $response; do
        case $kind in
            plain)
                if [[ $help == _ ]]; then
                    plain+=("$value")
                else
                    described+=("$value:$help")
                fi ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done
    (( $#described )) && _describe -V 'hpcalc' described
    (( $#plain )) && compadd -V hpcalc -a plain
    return 0
}

if [[ $funcstack[1] == _%(prog_name)s ]]; then
    # autoloaded: this file was the body of the function, which from now on is the one above
    _%(prog_name)s "$@"
else
    compdef _%(prog_name)s %(prog_name)s
fi
"""

_FISH = """\
# Completion of %(prog_name)s for fish.

function %(complete_func)s
    set -l current (commandline --current-token)
    set -l program (commandline --tokenize --current-process)[1]
    # after --option= the answer replaces the whole of --option=value
    set -l prefix (string match --regex -- '^--[^=]*=' $current)
    command --query $program; or return

    for line in (env COMP_WORDS=(commandline --cut-at-cursor --current-process | string collect) \\
            COMP_CWORD="$current" %(complete_var)s=fish_complete $program 2>/dev/null)
        set -l item (string split --max 1 -- , $line)
        switch $item[1]
            case plain
                printf '%%s\\n' "$prefix$item[2]"
            case file
                for name in (__fish_complete_path (string replace -- "$prefix" '' $current))
                    printf '%%s\\n' "$prefix$name"
                end
            case dir
                for name in (__fish_complete_directories (string replace -- "$prefix" '' $current) '')
                    printf '%%s\\n' "$prefix$name"
                end
        end
    end
end

complete --command %(prog_name)s --no-files --arguments '(%(complete_func)s)'
"""


class Bash(BashComplete):
    """bash."""

    source_template = _BASH

    def source(self) -> str:
        """The script; Click's own warns about the bash found on the PATH, which need not be the one that reads it."""
        return ShellComplete.source(self)


class Zsh(ZshComplete):
    """zsh."""

    source_template = _ZSH


class Fish(FishComplete):
    """fish."""

    source_template = _FISH


# File name in completions/ -> who prints it. The names are those the shells look for.
SCRIPTS: dict[str, type[ShellComplete]] = {"hpcalc.bash": Bash, "_hpcalc": Zsh, "hpcalc.fish": Fish}


def register() -> None:
    """Let Click answer ``_HPCALC_COMPLETE`` with these scripts."""
    for shell in SCRIPTS.values():
        add_completion_class(shell)
