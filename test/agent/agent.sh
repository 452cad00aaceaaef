#!/bin/sh
# A coding agent without a model: it follows the prompt as a script of commands, one a line, so a prompt is a scenario.
#
#   usage: agent.sh PROMPT_FILE        in the worktree
#
#   say TEXT             print it
#   work TEXT            report working
#   ask QUESTION         report needs_input, wait for a line of input and print "answer: LINE"; at its end, exit 0
#   block TEXT           report blocked
#   ready SUMMARY | HOW  report ready_for_review, with how to test it
#   write PATH TEXT      make a file, or replace it: a disk that is full leaves the old one
#   commit MESSAGE       commit everything
#   pause SECONDS
#   wait-file PATH       until it exists
#   spam N               print N lines
#   ignore-term          ignore SIGTERM from here on
#   child                leave a process behind and print "child PID"
#   Your work at ...     what a landing queue asks. About a conflict: merge the branch, keep its own lines, commit. About a
#                        failed check: remove files named bad…, but those with the word stubborn; commit; ignore the rest
#   exit N               end; the end of the prompt is "exit 0"
#
# Empty lines and lines that begin with "#" mean nothing; any other line is an error, exit 2.
set -eu

die() {
    printf 'agent.sh: %s\n' "$1" >&2
    exit 2
}

# quote prints its argument as a JSON string. awk sees it on standard input, because -v would read its backslashes.
quote() {
    printf '%s\n' "$1" | LC_ALL=C awk '
        BEGIN {
            for (i = 1; i < 32; i++) code[sprintf("%c", i)] = sprintf("\\u%04x", i)
            code["\\"] = "\\\\"
            code["\""] = "\\\""
        }
        {
            out = ""
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                out = out ((c in code) ? code[c] : c)
            }
            printf "\"%s\"", out
        }'
}

# report STATUS SUMMARY QUESTION BLOCKER HOW_TO_TEST replaces the contract; an empty question or blocker is none.
report() {
    # Assignments, because a failed substitution in an argument would go unnoticed.
    summary=$(quote "$2")
    question=${3:+$(quote "$3")}
    blocker=${4:+$(quote "$4")}
    how=$(quote "$5")
    mkdir -p .agency/state
    new=.agency/state/runner_status.json.$$
    {
        printf '{\n  "schema_version": "1.0",\n  "status": "%s",\n' "$1"
        printf '  "updated_at": "%s",\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        printf '  "summary": %s,\n' "$summary"
        printf '  "questions": [%s],\n' "$question"
        printf '  "blockers": [%s],\n' "$blocker"
        printf '  "how_to_test": %s,\n  "risks": []\n}\n' "$how"
    } >"$new"
    mv -f "$new" .agency/state/runner_status.json
}

[ $# -ge 1 ] || die "usage: agent.sh PROMPT_FILE"
exec 3<"$1" # standard input is for answers

while IFS= read -r line <&3 || [ -n "$line" ]; do
    command=${line%% *}
    text=${line#"$command"}
    text=${text# }
    case $command in
    '' | '#'*) ;;
    say) printf '%s\n' "$text" ;;
    work) report working "$text" '' '' '' ;;
    ask)
        report needs_input "$text" "$text" '' ''
        printf '? %s\n' "$text"
        IFS= read -r answer || exit 0
        printf 'answer: %s\n' "$answer"
        ;;
    block) report blocked "$text" '' "$text" '' ;;
    ready)
        case $text in
        *' | '*) report ready_for_review "${text%% | *}" '' '' "${text#* | }" ;;
        *) die "not SUMMARY | HOW: $line" ;;
        esac
        ;;
    write)
        path=${text%% *}
        mkdir -p "$(dirname "$path")"
        content=${text#"$path"}
        printf '%s\n' "${content# }" >"$path.new"
        mv -f "$path.new" "$path"
        ;;
    commit)
        git add -A -- .
        git -c user.name='Scripted Agent' -c user.email=agent@example.invalid -c commit.gpgSign=false \
            -c core.hooksPath=/dev/null commit -q --message="$text"
        ;;
    pause) sleep "$text" ;;
    wait-file) while [ ! -e "$text" ]; do sleep 0.05; done ;;
    spam) awk -v n="$text" 'BEGIN { for (i = 1; i <= n; i++) print "line " i " of " n }' ;;
    ignore-term) trap '' TERM ;;
    child)
        sleep 600 3<&- &
        printf 'child %s\n' "$!"
        ;;
    Your)
        case $text in
        *' does not pass '*)
            cat <&3 >/dev/null # the output of the check
            for file in bad*; do
                [ ! -e "$file" ] || grep -q stubborn "$file" || rm -- "$file"
            done
            git rev-parse HEAD >"tried-$(git branch --show-current | tr / -).txt"
            git add -A -- .
            git -c user.name='Scripted Agent' -c user.email=agent@example.invalid -c commit.gpgSign=false \
                -c core.hooksPath=/dev/null commit -q --message=fixed
            continue
            ;;
        esac
        branch=${text#work at * conflicts with }
        git -c user.name='Scripted Agent' -c user.email=agent@example.invalid -c commit.gpgSign=false \
            -c core.hooksPath=/dev/null merge -q -X ours --message="solved" "${branch%% at *}"
        ;;
    exit) exit "$text" ;;
    *) die "unknown command: $line" ;;
    esac
done
