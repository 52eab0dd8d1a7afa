package frame

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// draw fills values of Go types at random.
type draw struct {
	*rand.Rand
}

// Greatest depth of structs at which pointers, lists and maps are filled. Schemas contain schemas.
const depthMax = 9

var texts = []string{
	"", "a", "app.kubernetes.io/name", "é", "日本", "😀", "\"\\/\b\t\n", "<&>\u2028", "\x00\x7f", "nginx:1.27",
	"a text that is longer than sixteen bytes, and longer than a vector register of 64 bytes",
}

var quantities = []string{
	"0", "1", "-1", "100m", "1.5", "1500m", "2Gi", "512Mi", "1e3", "1E", "0.000000001", "12345678901234567890",
	"-3Ki", "1u", "7n", "1k",
}

// Values of fields that contain JSON of any form. Such a field keeps the text in protobuf, and the encoder of
// the library writes it anew, so these are texts that both write in one way.
var values = []string{
	`{"a":[1,2.5,"é",null,true],"b":{}}`, `{}`, `[]`, `"text"`, `7`, `-0.5`, `true`, `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`,
	`{"a":"é\n","big":12345678901234567890}`,
}

// fill draws a value and stores it in v. depth is the number of structs around v.
func (d draw) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case metav1.TypeMeta:
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Time{Time: d.time(time.Second)}))
		return
	case metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.MicroTime{Time: d.time(time.Microsecond)}))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(one(d, quantities))))
		return
	case intstr.IntOrString:
		number := intstr.FromInt32(int32(d.integer(32)))
		v.Set(reflect.ValueOf(one(d, []intstr.IntOrString{number, intstr.FromString(one(d, texts))})))
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: d.json()}))
		return
	case apiextensions.JSON:
		v.Set(reflect.ValueOf(apiextensions.JSON{Raw: d.json()}))
		return
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(values[7])}))
		return
	case apiextensions.JSONSchemaPropsOrBool:
		// The JSON is either the schema or the boolean.
		either := apiextensions.JSONSchemaPropsOrBool{Allows: d.IntN(2) == 0}
		if d.has(depth) {
			either = apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: d.schema(depth)}
		}
		v.Set(reflect.ValueOf(either))
		return
	case apiextensions.JSONSchemaPropsOrArray:
		either := apiextensions.JSONSchemaPropsOrArray{Schema: d.schema(depth)}
		if d.IntN(2) == 0 {
			either = apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{*d.schema(depth)}}
		}
		v.Set(reflect.ValueOf(either))
		return
	case apiextensions.JSONSchemaPropsOrStringArray:
		either := apiextensions.JSONSchemaPropsOrStringArray{Schema: d.schema(depth)}
		if d.IntN(2) == 0 {
			either = apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", one(d, texts)}}
		}
		v.Set(reflect.ValueOf(either))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				d.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if d.has(depth) {
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Elem(), depth)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if d.has(depth) {
				v.SetBytes([]byte(one(d, texts) + "\xff\xfe"))
			}
		} else if d.has(depth) {
			v.Set(reflect.MakeSlice(v.Type(), d.IntN(4), 4))
			for i := range v.Len() {
				d.fill(v.Index(i), depth)
			}
		}
	case reflect.Map:
		if d.has(depth) {
			v.Set(reflect.MakeMap(v.Type()))
			for range d.IntN(4) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				d.fill(key, depth)
				d.fill(value, depth)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString(one(d, texts))
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(d.integer(v.Type().Bits()))
	case reflect.Float64:
		v.SetFloat(one(d, []float64{0, 1, -2.5, 1e21, 0.1, math.MaxFloat64, 123456789.125}))
	default:
		panic(fmt.Sprintf("no rule for %s", v.Type()))
	}
}

// has returns whether a pointer, list or map at this depth is filled.
func (d draw) has(depth int) bool {
	return depth < depthMax && d.IntN(10) < 11-depth
}

func (d draw) schema(depth int) *apiextensions.JSONSchemaProps {
	schema := &apiextensions.JSONSchemaProps{}
	// A schema has a dozen fields with schemas. Without a greater step, one object would have thousands.
	d.fill(reflect.ValueOf(schema).Elem(), depth+3)
	return schema
}

func (d draw) json() []byte {
	return []byte(one(d, values))
}

// time returns the zero time, or a time that RFC 3339 can represent, in multiples of unit.
func (d draw) time(unit time.Duration) time.Time {
	switch d.IntN(6) {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(0, 0)
	case 2:
		return time.Unix(-d.Int64N(60_000_000_000), 0).UTC()
	default:
		return time.Unix(d.Int64N(250_000_000_000), d.Int64N(1_000_000_000)).UTC().Truncate(unit)
	}
}

func (d draw) integer(bits int) int64 {
	largest := int64(1)<<(bits-1) - 1
	return one(d, []int64{0, 1, -1, 80, 127, 128, 300, largest, -largest - 1, d.Int64N(largest)})
}

func one[T any](d draw, from []T) T {
	return from[d.IntN(len(from))]
}
