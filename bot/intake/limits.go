package intake

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// limits holds a decoded body to the bounds that its tags promise: minLength and maxLength (bytes), maxItems, minimum. Text has no
// control characters unless it is tagged as prose, which may have line ends and tabs. The tags are what the OpenAPI document says, so
// that the document and the door can't disagree.
func limits(body any) *Problem {
	return structLimits(reflect.ValueOf(body).Elem(), nil)
}

func structLimits(v reflect.Value, at []string) *Problem {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if p := fieldLimits(v.Field(i), f.Tag, append(at[:len(at):len(at)], name)); p != nil {
			return p
		}
	}
	return nil
}

func fieldLimits(v reflect.Value, tag reflect.StructTag, at []string) *Problem {
	pointer := canon.Pointer(at...)
	switch v.Kind() {
	case reflect.String:
		if why := text(v.String(), bound(tag, "minLength", 0), bound(tag, "maxLength", 256), tag.Get("prose") != ""); why != "" {
			return invalid(pointer, "%s", why)
		}
	case reflect.Int, reflect.Int64:
		if least := int64(bound(tag, "minimum", 0)); v.Int() < least {
			return invalid(pointer, "This must be a whole number from %d on.", least)
		}
	case reflect.Slice:
		if most := bound(tag, "maxItems", 64); v.Len() > most {
			return invalid(pointer, "This has more than %d entries.", most)
		}
		for i := range v.Len() {
			if p := fieldLimits(v.Index(i), tag, append(at[:len(at):len(at)], strconv.Itoa(i))); p != nil {
				return p
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return fieldLimits(v.Elem(), tag, at)
		}
	case reflect.Struct:
		if !v.Type().Implements(verbatimType) {
			return structLimits(v, at)
		}
	}
	return nil
}

func bound(tag reflect.StructTag, name string, otherwise int) int {
	n, err := strconv.Atoi(tag.Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

// text says what is wrong with a string, or "".
func text(s string, least, most int, prose bool) string {
	switch {
	case s == "" && least > 0:
		return "This is required."
	case len(s) < least || len(s) > most:
		return fmt.Sprintf("This must be %d to %d bytes long.", least, most)
	case !utf8.ValidString(s):
		return "This must be UTF-8."
	}
	for _, r := range s {
		if unicode.IsControl(r) && (!prose || r != '\n' && r != '\r' && r != '\t') {
			return "This must not have control characters."
		}
	}
	return ""
}

// tooLarge is a 413 that is not about the state.
func tooLarge(pointer, format string, args ...any) *Problem {
	return invalid(pointer, format, args...).as(http.StatusRequestEntityTooLarge)
}
