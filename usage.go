package agency

import (
	"cmp"
	"slices"
	"strings"
)

// Usage is the use of a model by a conversation so far. A null is unknown, never zero.
type Usage struct {
	InputTokens  *int64   `json:"input_tokens"`  // everything that the model read, cached or not
	CachedTokens *int64   `json:"cached_tokens"` // the part of them that came from a cache
	OutputTokens *int64   `json:"output_tokens"` // what the model wrote
	CostUSD      *float64 `json:"cost_usd"`      // the price in US dollars, as the agent reports it; agency computes none
	// Models are the tokens by model and kind, ordered by the name of the model; empty when the
	// agent does not distinguish them.
	Models []ModelUsage `json:"models"`
	// Estimated is set when the agent does not report everything that it used, so that the numbers
	// are a lower bound.
	Estimated bool `json:"estimated"`
}

// ModelUsage is the use of one model, in tokens by kind; each kind has its own price.
type ModelUsage struct {
	Model        string `json:"model"`          // its name, as the agent reports it
	Input        int64  `json:"input"`          // neither read from a cache nor written to one
	CacheRead    int64  `json:"cache_read"`     // read from a cache
	CacheWrite5m int64  `json:"cache_write_5m"` // kept for five minutes, or for a time that the agent does not report
	CacheWrite1h int64  `json:"cache_write_1h"` // written to a cache that keeps them for an hour
	Output       int64  `json:"output"`         // written by the model
}

// NewUsage returns the usage of models, with its totals.
func NewUsage(models ...ModelUsage) *Usage {
	var in, cached, out int64
	for i := range models {
		m := &models[i]
		in, cached, out = in+m.Input+m.CacheRead+m.CacheWrite5m+m.CacheWrite1h, cached+m.CacheRead, out+m.Output
	}
	return &Usage{InputTokens: &in, CachedTokens: &cached, OutputTokens: &out, Models: addModels(nil, models)}
}

// Listed returns the usage with a non-nil list of models: an answer has every list that it can
// have.
func (u Usage) Listed() Usage {
	u.Models = append([]ModelUsage{}, u.Models...)
	return u
}

// Known reports whether the agent reported any usage.
func (u *Usage) Known() bool {
	return u.InputTokens != nil || u.CachedTokens != nil || u.OutputTokens != nil || u.CostUSD != nil
}

// addModels adds the usage of more to to, one entry per model, ordered by name.
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

// Combine returns the combination of two usages of a model, by a function applied to each kind.
func (m ModelUsage) Combine(o ModelUsage, one func(a, b int64) int64) ModelUsage {
	return ModelUsage{
		Model: cmp.Or(m.Model, o.Model), Input: one(m.Input, o.Input), CacheRead: one(m.CacheRead, o.CacheRead),
		CacheWrite5m: one(m.CacheWrite5m, o.CacheWrite5m), CacheWrite1h: one(m.CacheWrite1h, o.CacheWrite1h), Output: one(m.Output, o.Output),
	}
}

// Counted is the usage that was counted for one answer of a model.
type Counted struct {
	ID    string     `json:"id"`
	Usage ModelUsage `json:"usage"`
}

// Add adds another usage; what neither reports stays unknown.
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
