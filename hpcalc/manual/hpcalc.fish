# Completion of hpcalc for fish.

function _hpcalc_completion
    set -l current (commandline --current-token)
    set -l program (commandline --tokenize --current-process)[1]
    # after --option= the answer replaces the whole of --option=value
    set -l prefix (string match --regex -- '^--[^=]*=' $current)
    command --query $program; or return

    for line in (env COMP_WORDS=(commandline --cut-at-cursor --current-process | string collect) \
            COMP_CWORD="$current" _HPCALC_COMPLETE=fish_complete $program 2>/dev/null)
        set -l item (string split --max 1 -- , $line)
        switch $item[1]
            case plain
                printf '%s\n' "$prefix$item[2]"
            case file
                for name in (__fish_complete_path (string replace -- "$prefix" '' $current))
                    printf '%s\n' "$prefix$name"
                end
            case dir
                for name in (__fish_complete_directories (string replace -- "$prefix" '' $current) '')
                    printf '%s\n' "$prefix$name"
                end
        end
    end
end

complete --command hpcalc --no-files --arguments '(_hpcalc_completion)'
