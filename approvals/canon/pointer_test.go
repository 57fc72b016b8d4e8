package canon

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The document and the pointers of RFC 6901, section 5.
func TestPointerRFC(t *testing.T) {
	t.Parallel()
	var document any
	if err := json.Unmarshal([]byte(`{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`), &document); err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]any{
		"": document, "/foo": []any{"bar", "baz"}, "/foo/0": "bar", "/": 0.0, "/a~1b": 1.0, "/c%d": 2.0,
		"/e^f": 3.0, "/g|h": 4.0, `/i\j`: 5.0, `/k"l`: 6.0, "/ ": 7.0, "/m~0n": 8.0,
	} {
		got, ok := Get(document, pointer)
		if !ok || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %t; want %v", pointer, got, ok, want)
		}
		tokens, err := Split(pointer)
		if err != nil || Pointer(tokens...) != pointer {
			t.Errorf("%q splits into %q (%v)", pointer, tokens, err)
		}
	}
	for _, pointer := range []string{"foo", "/nope", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/0/x", "/foo/", "/m~n", "/m~2", "/~", "/foo/99999999999999999999"} {
		if got, ok := Get(document, pointer); ok || Has(document, pointer) {
			t.Errorf("%q is there: %v", pointer, got)
		}
	}
	if Pointer("~1", "a/b") != "/~01/a~1b" {
		t.Error(Pointer("~1", "a/b"))
	}
	if v, ok := Get(map[string]any{"a": nil}, "/a"); v != nil || !ok {
		t.Error("a null that is there is not there")
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	document := map[string]any{"a": map[string]any{"b": []any{1.0, map[string]any{"c": "old"}}}, "x": 1.0}
	before, _ := json.Marshal(document)
	for _, tt := range []struct{ pointer, want string }{
		{"/a/b/1/c", `{"a":{"b":[1,{"c":"new"}]},"x":1}`},
		{"/a/b/0", `{"a":{"b":["new",{"c":"old"}]},"x":1}`},
		{"/a/b/-", `{"a":{"b":[1,{"c":"old"},"new"]},"x":1}`},
		{"/a/new", `{"a":{"b":[1,{"c":"old"}],"new":"new"},"x":1}`},
		{"/~1", `{"/":"new","a":{"b":[1,{"c":"old"}]},"x":1}`},
		{"", `"new"`},
	} {
		got, err := Set(document, tt.pointer, "new")
		if err != nil {
			t.Errorf("%q: %v", tt.pointer, err)
			continue
		}
		if b, _ := json.Marshal(got); string(b) != tt.want {
			t.Errorf("%q gives %s, want %s", tt.pointer, b, tt.want)
		}
	}
	for _, pointer := range []string{"a", "/nope/b", "/x/y", "/a/b/2", "/a/b/-/c", "/a/b/x", "/~"} {
		if _, err := Set(document, pointer, "new"); !errors.Is(err, ErrPointer) {
			t.Errorf("%q: %v", pointer, err)
		}
	}
	if after, _ := json.Marshal(document); string(after) != string(before) {
		t.Errorf("the document changed: %s", after)
	}
}
