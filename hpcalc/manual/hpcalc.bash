# Completion of hpcalc for bash 3.2 and later.

_hpcalc_completion() {
    local program=${1/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]}
    local IFS=$'\n' word kind value prefix= glued= count=0
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
    [[ $current == --*=* ]] && prefix=${current%%=*}=

    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$prefix$value") ;;
            file) type compopt >/dev/null 2>&1 && compopt -o default ;;
            dir) type compopt >/dev/null 2>&1 && compopt -o dirnames ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((count - 1)) _HPCALC_COMPLETE=bash_complete "$program" 2>/dev/null)
    return 0
}

# bash 4.4 brought nosort, bash 4.0 compopt; before that every empty answer means file names
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
    complete -o nosort -F _hpcalc_completion hpcalc
elif ((BASH_VERSINFO[0] >= 4)); then
    complete -F _hpcalc_completion hpcalc
else
    complete -o default -F _hpcalc_completion hpcalc
fi
