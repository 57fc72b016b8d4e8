package intake

import "strings"

// habits are names that other APIs use for what has another name here.
var habits = map[string]string{
	"args": "arguments", "input": "arguments", "parameters": "arguments", "params": "arguments",
	"name": "tool", "toolname": "tool", "function": "tool",
	"callid": "tool_call_id", "toolcall": "tool_call_id", "toolcalls": "calls", "interruptions": "calls",
	"expires": "expires_in", "ttl": "expires_in", "timeout": "wait", "message": "reason",
	"token": "lease_token", "lease": "lease_token", "output": "result", "after": "cursor", "run": "run_id",
}

// nearest is the known word that a wrong one is a slip of, or "". A word that has one may be repeated in an error: it is as good as
// one of ours.
func nearest(word string, known []string) string {
	if len(word) > 40 {
		return ""
	}
	plain := plainly(word)
	best, least := "", 3
	for _, k := range known {
		if p := plainly(k); p == plain || habits[plain] == k {
			return k
		} else if d := distance(plain, p); d < least && 3*d <= len(p) {
			best, least = k, d
		}
	}
	return best
}

// plainly drops what naming styles differ in.
func plainly(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(s))
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
