package rules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

const schemaTool = `tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    tools:
      any: {kind: effect, title: Any, agent: {}}
      t:
        kind: effect
        title: T
        agent: {}
        schema:
          type: object
          required: [name]
          additionalProperties: false
          properties:
            name: {type: string, minLength: 2, maxLength: 20}
            code: {type: string, pattern: "^[A-Z]{3}$"}
            mail: {type: string, format: email}
            env: {enum: [staging, production, 3]}
            fixed: {const: yes-please}
            amount: {type: number, minimum: 1, exclusiveMaximum: 100, multipleOf: 0.01}
            count: {type: integer}
            tags: {type: array, maxItems: 2, uniqueItems: true, items: {type: string}}
            "a/b~c": {type: boolean}
            order: {type: object, required: [id], properties: {id: {type: string}}, minProperties: 1}
            weights: {type: object, additionalProperties: {type: number}}
            either: {oneOf: [{type: string, maxLength: 3}, {type: number}]}
            none: {not: {type: string}}
`

// I24: whatever is wrong with the arguments, neither their values nor keys that only
// they contain are in the error.
func TestValidateNamesThePlaceAndNoValue(t *testing.T) {
	t.Parallel()
	tool := parse(t, schemaTool).Tools["t"]
	for _, c := range []struct{ args, pointer, message string }{
		{`{"name":"ok"}`, "", ""},
		{`{"name":"ok","amount":5.00,"count":3,"order":{"id":"x"},"weights":{"canary":1},"either":"abc"}`, "", ""},
		{`{}`, "", `misses "name"`},
		{`{"name":4711}`, "/name", "must be string, is number"},
		{`{"name":"c"}`, "/name", "must have at least 2 characters"},
		{`{"name":"canary-canary-canary"}`, "", ""},
		{`{"name":"canary-canary-canary-canary"}`, "/name", "must have at most 20 characters"},
		{`{"name":"ok","code":"canary"}`, "/code", `doesn't match the pattern "^[A-Z]{3}$"`},
		{`{"name":"ok","mail":"canary"}`, "/mail", "is not a valid email"},
		{`{"name":"ok","env":"canary"}`, "/env", `must be one of "staging", "production", 3`},
		{`{"name":"ok","fixed":"canary"}`, "/fixed", `must be "yes-please"`},
		{`{"name":"ok","amount":0.4711}`, "/amount", "must be"},
		{`{"name":"ok","amount":4711}`, "/amount", "must be less than 100"},
		{`{"name":"ok","amount":50.4711}`, "/amount", "must be a multiple of 0.01"},
		{`{"name":"ok","count":47.11}`, "/count", "must be integer, is number"},
		{`{"name":"ok","tags":["canary","canary"]}`, "/tags", "must not repeat an item"},
		{`{"name":"ok","tags":["a","b","canary"]}`, "/tags", "must have at most 2 items"},
		{`{"name":"ok","tags":["a",4711]}`, "/tags/1", "must be string, is number"},
		{`{"name":"ok","a/b~c":"canary"}`, "/a~1b~0c", "must be boolean, is string"},
		{`{"name":"ok","order":{"canary":1}}`, "/order", `misses "id"`},
		{`{"name":"ok","canary-key":"canary"}`, "", "has 1 fields that the schema doesn't name"},
		{`{"name":"ok","weights":{"canary-4711":"canary"}}`, "/weights/…", "must be number, is string"},
		{`{"name":"ok","weights":{"4711":"canary"}}`, "/weights/…", "must be number, is string"},
		{`{"name":"ok","either":"canary"}`, "/either", `breaks the schema's "oneOf"`},
		{`{"name":"ok","none":"canary"}`, "/none", "is not allowed by the schema"},
	} {
		for _, numbers := range []bool{false, true} {
			dec := json.NewDecoder(strings.NewReader(c.args))
			if numbers {
				dec.UseNumber()
			}
			var args map[string]any
			if err := dec.Decode(&args); err != nil {
				t.Fatal(err)
			}
			err := tool.Validate(args)
			if c.message == "" {
				if err != nil {
					t.Errorf("%s: %v", c.args, err)
				}
				continue
			}
			var invalid *rules.SchemaError
			if !errors.As(err, &invalid) {
				t.Errorf("%s: got %v, want a SchemaError", c.args, err)
				continue
			}
			if invalid.Pointer != c.pointer || !strings.Contains(invalid.Message, c.message) {
				t.Errorf("%s: got %q %q, want %q %q", c.args, invalid.Pointer, invalid.Message, c.pointer, c.message)
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "4711") {
				t.Errorf("%s: the error shows an argument: %v", c.args, err)
			}
		}
	}
}

func TestValidateAnswersTheSameEachTime(t *testing.T) {
	t.Parallel()
	tool := parse(t, schemaTool).Tools["t"]
	args := map[string]any{"name": "ok", "code": "x", "mail": "x", "env": "x", "amount": "x", "count": "x", "tags": "x"}
	first := tool.Validate(args).Error()
	for range 50 {
		if again := tool.Validate(args).Error(); again != first {
			t.Fatalf("%q, then %q", first, again)
		}
	}
}

func TestDefaultSchemaTakesAnyObject(t *testing.T) {
	t.Parallel()
	tool := parse(t, schemaTool).Tools["any"]
	for _, args := range []map[string]any{nil, {}, {"a": []any{1.0, nil}}} {
		if err := tool.Validate(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}
