package json_test

// step is one command of the session whose answers are kept as files.
type step struct {
	name string // of the file
	args string // words of the command line; PATH is the bench's folder, here and in the input
	exit int
	in   string
}

// before are commands without a run.
var before = []step{
	{"version", "version", 0, ""},
	{"config-path", "config path", 0, ""},
	{"config-show", "config show", 0, ""},
	{"config-check", "config check", 0, ""},
	{"config-check-invalid", "config check --config PATH/bad.toml", 1, ""},
	{"presets-none", "presets ls", 0, ""},
	{"presets-ls", "presets ls --config PATH/presets.toml", 0, ""},
	{"presets-show", "presets show worker --config PATH/presets.toml", 0, ""},
	{"daemon-status-none", "daemon status", 3, ""},
	{"daemon-start", "daemon start", 0, ""},
	{"daemon-status", "daemon status", 0, ""},
	{"doctor", "doctor", 0, ""},
	{"schemas", "schema", 0, ""},
	{"schema", "schema runner-status", 0, ""},
	{"schema-plan", "schema plan", 0, ""},
	{"session-plan", "session plan -", 0, "name: paint\nagents:\n- {id: 001, prompt: say hello}\n- {id: 002, prompt: say bye, after: [001], timeout: 2h}\n"},
	{"session-plan-invalid", "session plan -", 2, "agents:\n- {id: 001, promt: say hello}\n"},
	{"report-nowhere", "report working --summary Painting", 1, ""},
	{"report", "report working --summary Painting --quiet-for 20m", 0, ""},
	{"report-help", "report help", 0, ""},
	{"report-incomplete", "report needs-input --summary Colours", 2, ""},
	{"ls-none", "ls", 0, ""},
	{"ls-standby", "ls --standby", 0, ""},
	{"notify-none", "notify test", 2, ""},
	{"notify-ls", "notify ls", 0, ""},
}

// ofRun are commands about a run that works, asks and is stopped.
var ofRun = []step{
	{"run", "run --name paint --type build --tag worker --prompt -", 0, "wait-file PATH/go-paint\nask Which colour?\nready Painted it | look at it\nwait-file never\n"},
	{"wait-for", "wait paint --for needs-input --timeout 30s", 0, ""},
	{"wait-needs-person", "wait paint --timeout 30s", 8, ""},
	{"ls", "ls", 0, ""},
	{"api", "api run.list -", 0, `{"status": ["needs-input"], "removed": true}`},
	{"api-unknown", "api run.lst", 2, ""},
	{"api-mistake", "api run.list -", 2, `{"stauts": []}`},
	{"show", "show paint", 0, ""},
	{"explain", "explain paint", 0, ""},
	{"ports", "ports paint", 0, ""},
	{"attach", "attach paint", 0, ""},
	{"watchdog-start", "watchdog start --run paint --interval 3600 --message check", 0, ""},
	{"wait-timeout", "wait paint --for completed --timeout 50ms", 5, ""},
	{"watchdog-status", "watchdog status", 0, ""},
	{"watchdog-stop", "watchdog stop paint", 0, ""},
	{"watchdog-stop-none", "watchdog stop paint", 3, ""},
	{"rm-running", "rm paint", 4, ""},
	{"resume-running", "resume paint", 4, ""},
	{"resume-lost", "resume --all-lost", 0, ""},
	{"answer-late", "answer paint blue --prompt-id needs_input@1", 4, ""},
	{"answer-nothing", "answer one-shot allow", 3, ""},
	{"send", "send paint -", 0, "blue\n"},
	{"wait", "wait paint --for ready-for-review --timeout 30s", 0, ""},
	{"diff", "diff paint", 0, ""},
	{"verify-none", "verify paint --include-uncommitted", 1, ""},
	{"model-terminal", "model paint large", 4, ""},
	{"unsend-terminal", "unsend paint", 4, ""},
	{"stop", "stop paint", 0, ""},
	{"stop-again", "stop paint", 0, ""},
}

// ofWork are commands that look at the work of a run and land it.
var ofWork = []step{
	{"path", "path paint", 0, ""},
	{"comment", "review paint --comment read.me:1=why --comment read.me:1=really", 0, ""},
	{"comment-discard", "review paint --discard-comment 2", 0, ""},
	{"comment-send", "review paint --send", 4, ""},
	{"review-marked", "review paint --reviewed read.me", 0, ""},
	{"review", "review paint", 0, ""},
	{"merge-uncommitted", "merge paint", 4, ""},
	{"push-uncommitted", "push paint --remote PATH/elsewhere.git", 4, ""},
	{"pr-no-remote", "pr paint --status", 1, ""},
	{"merge-dry-run", "merge paint --include-uncommitted --dry-run", 0, ""},
	{"abandon", "abandon paint", 0, ""},
	{"merge-abandoned", "merge paint", 4, ""},
	{"abandon-undo", "abandon paint --undo", 0, ""},
	{"flag", "flag paint look at the colour", 0, ""},
	{"flag-no-reason", "flag paint", 2, ""},
	{"unflag", "unflag paint", 0, ""},
	{"unflag-again", "unflag paint", 0, ""},
	{"merge", "merge paint --include-uncommitted --message Paint --into main", 0, ""},
	{"merge-again", "merge paint", 4, ""},
	{"queue-add", "queue add paint", 4, ""},
	{"queue-ls", "queue ls", 0, ""},
	{"queue-pause", "queue pause --into main", 0, ""},
	{"queue-explain", "queue explain paint", 0, ""},
	{"send-ended", "send paint blue", 4, ""},
	{"attach-ended", "attach paint", 3, ""},
}

// ofEnd are commands about a run that ended, and mistakes.
var ofEnd = []step{
	{"run-spec", "run --spec PATH/spec.json", 0, ""},
	{"wait-completed", "wait one-shot --timeout 30s", 0, ""},
	{"show-completed", "show one-shot", 0, ""},
	{"logs", "logs one-shot", 0, ""},
	{"events", "events --run one-shot", 0, ""},
	{"rm-snapshot", "rm one-shot", 0, ""},
	{"rm-again", "rm one-shot", 0, ""},
	{"rm-landed", "rm paint --delete-branch", 0, ""},
	{"ls-removed", "ls --all --tag nightly", 0, ""},
	{"show-unknown", "show no-such-run", 3, ""},
	{"usage-flag", "ls --al", 2, ""},
	{"usage-arguments", "show", 2, ""},
	{"usage-command", "lst", 2, ""},
	{"run-no-task", "run", 2, ""},
	{"run-no-runner", "run --runner aider --prompt a", 1, ""},
}

// ofSession are commands about sessions of a plan.
var ofSession = []step{
	{"session-start", "session start - --name mural", 0, "agents:\n- {id: 001, prompt: \"wait-file PATH/go-mural\\nask which colour\"}\n- {id: 002, prompt: say bye, after: [001]}\n"},
	{"session-wait-needs-user", "session wait mural --attention --timeout 30s", 8, ""},
	{"session-wait-timeout", "session wait mural --timeout 50ms", 5, ""},
	{"session-pause", "session pause mural", 0, ""},
	{"session-resume", "session resume mural", 0, ""},
	{"session-resume-running", "session resume mural", 4, ""},
	{"session-retry-running", "session retry mural", 4, ""},
	{"session-cancel", "session cancel mural", 0, ""},
	{"session-wait-cancelled", "session wait mural --timeout 30s", 4, ""},
	{"session-start-land", "session start - --name fresco", 0, "base: deps\nagents:\n- {id: 001, prompt: \"write wall.txt wet\\ncommit Wall\"}\n- {id: 002, prompt: \"write wall.txt dry\\ncommit Dry\", after: [001]}\n"},
	{"session-wait-land", "session wait fresco --timeout 30s", 0, ""},
	{"session-review", "review fresco", 0, ""},
	{"session-merge-dry-run", "merge fresco --dry-run", 0, ""},
	{"session-merge", "merge fresco", 0, ""},
	{"session-merge-again", "merge fresco", 4, ""},
	{"gc-session", "gc --older-than 0s --apply", 0, ""},
}

// ofRepository are commands that set a repository up.
var ofRepository = []step{
	{"init-dry-run", "init --dry-run --type go --agent-runs", 0, ""},
	{"init", "init --type go --setup read.me", 0, ""},
	{"init-invalid", "init --sandbox vm", 2, ""},
	{"trust-show", "trust --show", 0, ""},
	{"trust-revoke", "trust --revoke", 0, ""},
	{"run-untrusted", "run --prompt a", 8, ""},
	{"trust", "trust", 0, ""},
}

// ofHand are commands about a session that a script keeps.
var ofHand = []step{
	{"session-ls-none", "session ls", 0, ""},
	{"session-create", "session create --name night --source-file plan.md --agent 001:paint:1 --agent 002:dry:2", 0, ""},
	{"session-update", "session update night --agent 001 start --pid 4711", 0, ""},
	{"session-update-refused", "session update night --agent 002 complete", 4, ""},
	{"session-running", "session show night --running", 0, ""},
	{"session-is-complete", "session show night --is-complete", 1, ""},
	{"session-rm-running", "session rm night", 4, ""},
	{"session-update-cancel", "session update night cancel --error rain", 0, ""},
	{"session-show-outside", "session show night", 0, ""},
	{"session-ls", "session ls", 0, ""},
	{"session-rm-old", "session rm --older-than 7d", 0, ""},
	{"session-rm", "session rm night", 0, ""},
	{"session-show-none", "session show night", 3, ""},
}

// after are commands about the daemon.
var after = []step{
	{"daemon-logs", "daemon logs", 0, ""},
	{"daemon-stop", "daemon stop", 0, ""},
	{"daemon-stop-none", "daemon stop", 0, ""},
}
