package agency

import (
	"cmp"
	"slices"
	"strings"
)

// Usage is what a conversation has used so far. A null is unknown, never zero.
type Usage struct {
	InputTokens  *int64   `json:"input_tokens"`  // all that the model read, cached or not
	CachedTokens *int64   `json:"cached_tokens"` // the part of them that came from a cache
	OutputTokens *int64   `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
	// Models are the tokens by model and kind, by the name of the model; empty where the agent does not tell them apart.
	Models []ModelUsage `json:"models"`
	// Estimated is set when the agent does not tell all that it used, so that the numbers are a lower bound.
	Estimated bool `json:"estimated"`
}

// ModelUsage is what one model was used for, in tokens of the kinds that have prices of their own.
type ModelUsage struct {
	Model        string `json:"model"`
	Input        int64  `json:"input"` // neither read from a cache nor written to one
	CacheRead    int64  `json:"cache_read"`
	CacheWrite5m int64  `json:"cache_write_5m"` // kept for five minutes, also where the agent does not tell for how long
	CacheWrite1h int64  `json:"cache_write_1h"`
	Output       int64  `json:"output"`
}

// NewUsage is the usage of models, with its totals.
func NewUsage(models ...ModelUsage) *Usage {
	var in, cached, out int64
	for i := range models {
		m := &models[i]
		in, cached, out = in+m.Input+m.CacheRead+m.CacheWrite5m+m.CacheWrite1h, cached+m.CacheRead, out+m.Output
	}
	return &Usage{InputTokens: &in, CachedTokens: &cached, OutputTokens: &out, Models: addModels(nil, models)}
}

// Listed is the usage with a list of models, which may be empty: an answer has every list that it can have.
func (u Usage) Listed() Usage {
	u.Models = append([]ModelUsage{}, u.Models...)
	return u
}

// Known reports whether an agent told anything of what it used.
func (u *Usage) Known() bool {
	return u.InputTokens != nil || u.CachedTokens != nil || u.OutputTokens != nil || u.CostUSD != nil
}

// addModels adds what models were used for, each counted once, in the order of their names.
func addModels(to, more []ModelUsage) []ModelUsage {
	if len(more) == 0 {
		return to
	}
	all := slices.Clone(to)
	for _, m := range more {
		i := slices.IndexFunc(all, func(known ModelUsage) bool { return known.Model == m.Model })
		if i < 0 {
			all = append(all, m)
			continue
		}
		all[i] = all[i].Combine(m, func(a, b int64) int64 { return a + b })
	}
	slices.SortFunc(all, func(a, b ModelUsage) int { return strings.Compare(a.Model, b.Model) })
	return all
}

// Combine returns two usages of a model put together by a function, kind by kind.
func (m ModelUsage) Combine(o ModelUsage, one func(a, b int64) int64) ModelUsage {
	return ModelUsage{
		Model: cmp.Or(m.Model, o.Model), Input: one(m.Input, o.Input), CacheRead: one(m.CacheRead, o.CacheRead),
		CacheWrite5m: one(m.CacheWrite5m, o.CacheWrite5m), CacheWrite1h: one(m.CacheWrite1h, o.CacheWrite1h), Output: one(m.Output, o.Output),
	}
}

// Counted is what one answer of a model is counted for.
type Counted struct {
	ID    string     `json:"id"`
	Usage ModelUsage `json:"usage"`
}

// Add adds what was used elsewhere; what neither tells stays unknown.
func (u *Usage) Add(other *Usage) {
	u.InputTokens = sum(u.InputTokens, other.InputTokens)
	u.CachedTokens = sum(u.CachedTokens, other.CachedTokens)
	u.OutputTokens = sum(u.OutputTokens, other.OutputTokens)
	u.CostUSD = sum(u.CostUSD, other.CostUSD)
	u.Models = addModels(u.Models, other.Models)
	u.Estimated = u.Estimated || other.Estimated
}

func sum[N int64 | float64](a, b *N) *N {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return new(*a + *b)
	}
}
