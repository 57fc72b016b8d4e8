package interactions

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
)

// Every kind that the core writes about a request, and every denial, has words: the core's source is asked, so that a new one is
// not forgotten here.
func TestTrailKnowsEveryKind(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../approvals/*.go")
	must(t, err)
	kind := regexp.MustCompile(`["']((?:approval|decision|execution|evidence|run)\.[a-z_]+)["']`)
	deny := regexp.MustCompile(`DenialKind = "([a-z_]+)"`)
	// The first two are message types, the others rows of the whole tenant, which no request's trail has.
	others := []string{approvals.RunResume, approvals.RunBlocked, "execution.suspended", "execution.unsuspended"}
	kinds := map[string]bool{"approval." + string(approvals.Revoked): true, "approval." + string(approvals.Expired): true, "approval." + string(approvals.MigrationRequired): true}
	denials := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		must(t, err)
		for _, m := range kind.FindAllStringSubmatch(string(src), -1) {
			if !slices.Contains(others, m[1]) {
				kinds[m[1]] = true
			}
		}
		for _, m := range deny.FindAllStringSubmatch(string(src), -1) {
			denials[m[1]] = true
		}
	}
	if len(kinds) < 25 || len(denials) < 15 {
		t.Fatalf("found %d kinds and %d denials: the core is written otherwise now", len(kinds), len(denials))
	}
	for k := range kinds {
		if told := bot.Timeline([]approvals.Event{{Kind: k}})[0].Plain(); strings.Contains(told, k) {
			t.Errorf("%s is told as %q", k, told)
		}
	}
	for d := range denials {
		told := bot.Timeline([]approvals.Event{{Kind: "decision.refused", Actor: "slack:U0EVE", Detail: []byte(`{"verb":"approve","why":"` + d + `"}`)}})[0].Plain()
		why, ok := strings.CutPrefix(told, "@U0EVE tried to approve it and was refused: ")
		if !ok || !strings.Contains(why, " ") || strings.Contains(why, "_") {
			t.Errorf("%s is told as %q", d, told)
		}
	}
}
