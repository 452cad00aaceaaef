package view

import (
	"fmt"
	"strconv"

	"agency"
)

// Tokens returns how many tokens an agent has used, in thousands or millions if there are many; a dash when
// unknown.
func Tokens(u *agency.Usage) string {
	if u.InputTokens == nil && u.OutputTokens == nil {
		return "-"
	}
	total := int64(0)
	for _, n := range []*int64{u.InputTokens, u.OutputTokens} {
		if n != nil {
			total += *n
		}
	}
	switch {
	case total < 1000:
		return strconv.FormatInt(total, 10)
	case total < 1_000_000:
		return fmt.Sprintf("%dk", total/1000)
	default:
		return fmt.Sprintf("%.1fM", float64(total)/1e6)
	}
}

// Cost returns what an agent has cost in dollars; a dash when unknown.
func Cost(u *agency.Usage) string {
	if u.CostUSD == nil {
		return "-"
	}
	return fmt.Sprintf("$%.2f", *u.CostUSD)
}

// Usage returns what an agent has used; an unknown part is a dash.
func Usage(u *agency.Usage) string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return strconv.FormatInt(*n, 10)
	}
	if !u.Known() {
		return "-"
	}
	about := ""
	if u.Estimated {
		about = "at least "
	}
	return about + fmt.Sprintf("%s tokens in, %s cached, %s out, cost %s", number(u.InputTokens), number(u.CachedTokens), number(u.OutputTokens), Cost(u))
}
