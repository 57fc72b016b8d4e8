package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// A tenant's name is a folder of secrets, so it can't hold a dot or a slash.
	tenantName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	ruleName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	toolName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$`)
	agentName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	versionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./:+@-]{0,127}$`)

	slackUser    = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	slackGroup   = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
	slackChannel = regexp.MustCompile(`^[CGD][A-Z0-9]{2,20}$`)
	slackTeam    = regexp.MustCompile(`^[TE][A-Z0-9]{2,20}$`)

	dayPart = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)
)

// longest bounds every waiting time of a rule.
const longest = 400 * 24 * time.Hour

func parseDuration(s string) (time.Duration, error) {
	var days time.Duration
	if m := dayPart.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, err
		}
		days, s = time.Duration(n)*24*time.Hour, m[2]
		if s == "" {
			return days, nil
		}
		if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
			return 0, errors.New("sign inside a duration")
		}
	}
	rest, err := time.ParseDuration(s)
	if err != nil {
		return 0, err
	}
	return days + rest, nil
}

// formatDuration writes whole days, hours, minutes or seconds the short way.
func formatDuration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		letter string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.length && d%unit.length == 0 {
			return fmt.Sprintf("%d%s", d/unit.length, unit.letter)
		}
	}
	return d.String()
}

func meant(s string, words []string) string {
	if near := nearest(s, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// nearest is the known word that is at most a third of its letters away, or "".
func nearest(s string, words []string) string {
	best, least := "", 0
	for _, w := range words {
		d := distance(strings.ToLower(s), strings.ToLower(w))
		if d <= max(1, len(w)/3) && (best == "" || d < least) {
			best, least = w, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: a swap counts once.
func distance(a, b string) int {
	if len(a) > 128 || len(b) > 128 {
		return 128
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
