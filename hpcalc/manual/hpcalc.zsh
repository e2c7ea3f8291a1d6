#compdef hpcalc
# Completion of hpcalc for zsh.

_hpcalc() {
    local program=${words[1]/#\~/$HOME} kind value help
    local -a response plain described
    whence -p -- $program >/dev/null 2>&1 || return 1

    response=("${(@f)$(COMP_WORDS="${(F)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \
        _HPCALC_COMPLETE=zsh_complete $program 2>/dev/null)}")
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

if [[ $funcstack[1] == _hpcalc ]]; then
    # autoloaded: this file was the body of the function, which from now on is the one above
    _hpcalc "$@"
else
    compdef _hpcalc hpcalc
fi
