package secret

import (
	"slices"
	"strings"
	"unicode"
)

// CredentialName says whether a field of this name is expected to hold a
// credential: password, apiToken, tracing_api_key, X-Auth-Token,
// clientSecret1. The last word of the name decides, so a field that is about a
// credential (token_count, secret_name, tracing_api_key_hash) is none; nor are
// cursors and sentinels (nextPageToken, eos_token), counters in the plural
// (input_tokens) and keys that open nothing (idempotency_key, prompt_cache_key).
func CredentialName(key string) bool {
	w := words(key)
	for len(w) > 1 && (qualifiers[w[len(w)-1]] || digits(w[len(w)-1])) {
		w = w[:len(w)-1]
	}
	if len(w) == 0 {
		return false
	}
	last := strings.TrimRight(w[len(w)-1], "0123456789")
	before := ""
	if len(w) > 1 {
		before = w[len(w)-2]
	}
	switch {
	case standalone[last]:
		return true
	case last == "token":
		return !slices.ContainsFunc(w[:len(w)-1], func(word string) bool { return cursors[word] })
	case last == "tokens":
		return tokenKinds[before]
	case last == "key" || last == "keys":
		return keyKinds[before]
	case last == "id":
		return before == "key" && len(w) > 2 && w[len(w)-3] == "access"
	case last == "string" || last == "str":
		return before == "connection" || before == "conn"
	}
	return glued(last)
}

// glued recognises names that are written without any separator.
func glued(word string) bool {
	for _, end := range []string{"password", "passwd", "passphrase", "secret", "credential", "credentials", "accesskeyid", "connectionstring"} {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	if kind, ok := strings.CutSuffix(word, "token"); ok {
		for cursor := range cursors {
			if strings.HasSuffix(kind, cursor) {
				return false
			}
		}
		return true
	}
	if kind, ok := strings.CutSuffix(word, "key"); ok {
		for open := range keyKinds {
			if strings.HasSuffix(kind, open) {
				return true
			}
		}
	}
	return false
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

var (
	standalone = set("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "credential",
		"credentials", "creds", "authorization", "bearer", "cookie", "cookies", "jwt", "apikey", "apikeys", "privatekey", "secretkey", "accesskey")
	// keyKinds: what a key that opens something is called.
	keyKinds = set("api", "secret", "private", "access", "signing", "signature", "encryption", "decryption", "auth", "account",
		"shared", "master", "service", "ssh", "hmac", "webhook", "license", "subscription", "storage", "token", "deploy", "app", "client")
	// tokenKinds: plurals that hold tokens and don't count them.
	tokenKinds = set("access", "refresh", "auth", "bearer", "api", "session", "bot", "user", "id")
	// cursors: tokens that mark a place, not a right.
	cursors = set("page", "next", "prev", "previous", "continuation", "continue", "cursor", "sync", "pagination", "start", "stop",
		"end", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "special", "max", "min", "fencing")
	// qualifiers say how or when a value is held, not that it is another thing.
	qualifiers = set("value", "text", "raw", "plain", "plaintext", "cleartext", "header", "current", "old", "new", "previous",
		"confirmation", "confirm", "base64", "b64", "hex", "pem", "env", "default", "json")
)

func digits(word string) bool { return strings.Trim(word, "0123456789") == "" }

// words splits a name at punctuation and where camel case turns:
// "X-APIKey2" gives x, api, key2.
func words(name string) []string {
	var (
		out  []string
		word []rune
		rs   = []rune(name)
	)
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	for i, r := range rs {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			afterLower := unicode.IsLower(rs[i-1]) || unicode.IsDigit(rs[i-1])
			endOfAcronym := unicode.IsUpper(rs[i-1]) && i+1 < len(rs) && unicode.IsLower(rs[i+1])
			if afterLower || endOfAcronym {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return out
}
