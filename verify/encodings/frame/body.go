package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Groups whose objects a server stores as JSON.
var storedAsJSON = []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}

// decoded is what a server makes of a request body.
type decoded struct {
	// Error of the decoder, if the body has a value of a wrong type.
	Fault string `json:"fault,omitempty"`
	// Messages about unknown fields and duplicate members.
	Complaints []string `json:"complaints,omitempty"`
	// The object that a client reads after it was stored.
	Value json.RawMessage `json:"value,omitempty"`
}

// writeBody writes a line: apiVersion/Kind, a body, and what a server makes of it.
func writeBody(out *bufio.Writer, types *runtime.Scheme, serializer runtime.Serializer, kind schema.GroupVersionKind, seed uint64) error {
	draw := draw{rand.New(rand.NewPCG(seed, 2))}
	drawn, err := types.New(kind)
	if err != nil {
		return err
	}
	draw.fill(reflect.ValueOf(drawn).Elem(), 2)
	text, err := json.Marshal(drawn)
	if err != nil {
		return err
	}
	var value any
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&value); err != nil {
		return err
	}
	var body strings.Builder
	// Most bodies have few changes, so that not all of them have a fault.
	draw.change(&body, value, one(draw, []int{0, 3, 10, 40}))
	result, err := decode(types, serializer, kind, []byte(body.String()))
	if err != nil {
		return err
	}
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	_, err = fmt.Fprintf(out, "%s/%s\t%s\t%s\n", apiVersion, name, body.String(), line)
	return err
}

func decode(types *runtime.Scheme, serializer runtime.Serializer, kind schema.GroupVersionKind, body []byte) (decoded, error) {
	object, err := types.New(kind)
	if err != nil {
		return decoded{}, err
	}
	complaints, err := kjson.UnmarshalStrict(body, object)
	if err != nil {
		return decoded{Fault: err.Error()}, nil
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !slices.Contains(storedAsJSON, kind.Group) {
		var wire bytes.Buffer
		if err := serializer.Encode(object, &wire); err != nil {
			return decoded{}, err
		}
		if object, _, err = serializer.Decode(wire.Bytes(), nil, nil); err != nil {
			return decoded{}, err
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	var result decoded
	for _, complaint := range complaints {
		result.Complaints = append(result.Complaints, complaint.Error())
	}
	result.Value, err = json.Marshal(object)
	return result, err
}

// Texts of JSON values that replace others.
var replacements = []string{
	"null", "null", "null", "true", "false", `""`, `"x"`, "0", "1", "-1", "1.5", "1e3", "3000000000", "99999999999999999999",
	"[]", "{}", `[null]`, `{"a":null}`, `["a"]`, `{"a":"b"}`, `[1,"a"]`,
	`"1000m"`, `"1024Mi"`, `"+3"`, `"1.50"`, `"0.5Ki"`, `"1x"`, `"1 "`, `"aGk="`, `"aGl"`, `"no base64"`,
	`"2026-01-31T12:00:00Z"`, `"2026-01-31T12:00:00.5+01:30"`, `"2026-01-31T12:00:00.123456-02:00"`, `"2026-02-30T00:00:00Z"`, `"0001-01-01T00:00:00Z"`,
	`"9999-12-31T23:59:59Z"`, `"0000-01-01T00:00:00Z"`,
}

// change writes a value as JSON with members in random order. It replaces about per mille values of 1000, and adds
// about as many members that are unknown or duplicates.
func (d draw) change(out *strings.Builder, value any, perMille int) {
	if d.IntN(1000) < perMille {
		out.WriteString(one(d, replacements))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				out.WriteByte(',')
			}
			// Both values of a duplicate are changed, so that one of them often lacks what the other one has.
			isDuplicate, rate := d.IntN(1000) < perMille, perMille
			if isDuplicate {
				rate = 10 * perMille
			}
			d.member(out, name, value[name], rate)
			if isDuplicate {
				out.WriteByte(',')
				d.member(out, one(d, []string{name, "x", "unknown", names[0]}), value[name], 10*perMille)
			}
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, item := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			d.change(out, item, perMille)
		}
		out.WriteByte(']')
	default:
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		out.Write(text)
	}
}

func (d draw) member(out *strings.Builder, name string, value any, perMille int) {
	text, err := json.Marshal(name)
	if err != nil {
		panic(err)
	}
	out.Write(text)
	out.WriteByte(':')
	d.change(out, value, perMille)
}
