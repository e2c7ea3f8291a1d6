#compdef %(prog_name)s
# Completion of %(prog_name)s for zsh.

_%(prog_name)s() {
    local program=${words[1]/#\~/$HOME} kind value help
    local -a response plain described
    whence -p -- $program >/dev/null 2>&1 || return 1

    response=("${(@f)$(COMP_WORDS="${(F)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \
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
