package plan

// The keys that the reader knows.
var (
	PlanKeys    = planKeys
	SettingKeys = settingKeys
	AgentKeys   = agentKeys
)
