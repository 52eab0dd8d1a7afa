package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// drawer draws schemas and objects from a seed.
type drawer struct {
	*rand.Rand
	// preserving is the number of values above that keep unknown members.
	preserving int
}

// whole is a number that is written with a fraction of zero, which a server reads as a floating-point number.
type whole int

func (w whole) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.0", int(w)), nil
}

// node is a schema, as in a definition.
type node = map[string]any

var (
	names   = []string{"a", "b", "c", "key", "name"}
	texts   = []string{"x", "y", "z", "", "<&>\"\\é\u2028\b", "n 1", "true"}
	labels  = []string{"k1", "k2", "example.com/k3", "k.4"}
	numbers = []any{int64(0), int64(1), int64(2), int64(80), int64(-7), 1.5, whole(2), whole(1), 1e-7, 1e21, int64(1234567)}
)

// chance returns true with a probability in percent.
func (d *drawer) chance(percent int) bool {
	return d.IntN(100) < percent
}

func pick[T any](d *drawer, from []T) T {
	return from[d.IntN(len(from))]
}

// scalar draws the schema of a value that is no list or object.
func (d *drawer) scalar() node {
	return pick(d, []node{
		{"type": "string"},
		{"type": "string"},
		{"type": "integer"},
		{"type": "number"},
		{"type": "boolean"},
		{"type": "string", "format": "date-time"},
		{"type": "string", "format": "byte"},
		{"x-kubernetes-int-or-string": true},
		{"type": "string", "nullable": true},
	})
}

// schema draws the schema of a value.
func (d *drawer) schema(depth int) node {
	if depth == 0 || d.chance(15) {
		return d.scalar()
	}
	switch d.IntN(10) {
	case 0, 1, 2:
		return d.object(depth)
	case 3:
		return d.withMapType(node{"type": "object", "additionalProperties": d.schema(depth - 1)})
	case 4:
		return pick(d, []node{
			{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			{"type": "object", "additionalProperties": true},
			{"type": "object"},
			{"x-kubernetes-preserve-unknown-fields": true},
			{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
		})
	case 5:
		list := node{"type": "array", "items": d.schema(depth - 1)}
		if d.chance(50) {
			list["x-kubernetes-list-type"] = "atomic"
		}
		return list
	case 6, 7:
		return node{"type": "array", "items": d.scalar(), "x-kubernetes-list-type": "set"}
	default:
		item := d.object(depth)
		delete(item, "x-kubernetes-preserve-unknown-fields")
		properties := item["properties"].(node)
		keys := []any{"key"}
		if d.chance(40) {
			keys = pick(d, [][]any{{"name", "key"}, {"a", "b"}, {"name"}})
		}
		for _, key := range keys {
			property := pick(d, []node{{"type": "string"}, {"type": "integer"}, {"type": "string"}, {"type": "boolean"}})
			if d.chance(30) {
				property["default"] = d.value(property)
			}
			properties[key.(string)] = property
		}
		return node{"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
	}
}

// object draws the schema of an object with properties.
func (d *drawer) object(depth int) node {
	properties := node{}
	for _, name := range names {
		if d.chance(60) {
			properties[name] = d.schema(depth - 1)
		}
	}
	if len(properties) == 0 {
		properties["a"] = d.scalar()
	}
	object := d.withMapType(node{"type": "object", "properties": properties})
	if d.chance(10) {
		object["x-kubernetes-preserve-unknown-fields"] = true
	}
	if d.chance(5) {
		object["x-kubernetes-embedded-resource"] = true
	}
	return object
}

func (d *drawer) withMapType(schema node) node {
	if d.chance(25) {
		schema["x-kubernetes-map-type"] = pick(d, []string{"atomic", "granular"})
	}
	return schema
}

// changed returns a schema in which some lists and objects are atomic, and others no longer are.
func (d *drawer) changed(schema node) node {
	out := node{}
	for name, value := range schema {
		switch value := value.(type) {
		case node:
			if name == "properties" {
				properties := node{}
				for property, below := range value {
					properties[property] = d.changed(below.(node))
				}
				out[name] = properties
			} else {
				out[name] = d.changed(value)
			}
		default:
			out[name] = value
		}
	}
	if out["type"] == "object" && d.chance(25) {
		out["x-kubernetes-map-type"] = "atomic"
	}
	if out["type"] == "array" && d.chance(25) {
		out["x-kubernetes-list-type"] = "atomic"
		delete(out, "x-kubernetes-list-map-keys")
	}
	return out
}

// root draws the schema of an object.
func (d *drawer) root() node {
	root := node{"type": "object", "properties": node{"spec": d.object(3), "status": d.object(2)}}
	if d.chance(10) {
		root["x-kubernetes-preserve-unknown-fields"] = true
	}
	return root
}

// any draws a value without a schema.
func (d *drawer) any(depth int) any {
	switch kind := d.IntN(7); {
	case kind == 0 && depth > 0:
		list := []any{}
		for range d.IntN(3) {
			list = append(list, d.any(depth-1))
		}
		return list
	case kind <= 2 && depth > 0:
		object := node{}
		for range d.IntN(4) {
			object[pick(d, names)] = d.any(depth - 1)
		}
		return object
	case kind == 3:
		return d.chance(50)
	case kind == 4:
		return pick(d, numbers)
	case kind == 5 && d.chance(30):
		return nil
	default:
		return pick(d, texts)
	}
}

// value draws a value of a schema. Few values are null, or have a wrong type.
func (d *drawer) value(schema node) any {
	if d.IntN(300) == 0 {
		return d.any(2)
	}
	if d.chance(2) {
		return nil
	}
	kind, _ := schema["type"].(string)
	switch kind {
	case "string":
		return pick(d, texts)
	case "integer":
		return pick(d, []any{int64(0), int64(1), int64(2), int64(80), int64(1234567)})
	case "number":
		return pick(d, numbers)
	case "boolean":
		return d.chance(50)
	case "array":
		list := []any{}
		for range d.IntN(5) {
			item := d.value(schema["items"].(node))
			if d.isUnfit(list, item, schema) && d.chance(95) {
				continue
			}
			list = append(list, item)
		}
		return list
	case "object":
		object := node{}
		d.members(object, schema, 60)
		return object
	default:
		if schema["x-kubernetes-int-or-string"] == true {
			return pick(d, []any{int64(1), "x", "10%", int64(2)})
		}
		return d.any(2)
	}
}

// isUnfit returns whether a list can't contain an item: because it contains the item, or the item has no keys.
func (d *drawer) isUnfit(list []any, item any, schema node) bool {
	switch schema["x-kubernetes-list-type"] {
	case "set":
		return item == nil || slices.Contains(list, item)
	case "map":
		keys := schema["x-kubernetes-list-map-keys"].([]any)
		value := func(item any) (result []any) {
			object, _ := item.(node)
			for _, key := range keys {
				result = append(result, object[key.(string)])
			}
			return result
		}
		own := value(item)
		isEmpty := !slices.ContainsFunc(own, func(value any) bool { return value != nil })
		return isEmpty || slices.ContainsFunc(list, func(other any) bool { return slices.Equal(own, value(other)) })
	}
	return false
}

// members draws members of an object, each with a probability in percent.
func (d *drawer) members(object, schema node, percent int) {
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		d.preserving++
		defer func() { d.preserving-- }()
	}
	properties, _ := schema["properties"].(node)
	for _, name := range names {
		if property, ok := properties[name]; ok && d.chance(percent) {
			object[name] = d.value(property.(node))
		}
	}
	if below, ok := schema["additionalProperties"].(node); ok {
		for range d.IntN(3) {
			object[pick(d, labels)] = d.value(below)
		}
	}
	isOpen := schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true ||
		len(properties) == 0 && schema["additionalProperties"] == nil
	if isOpen || d.preserving > 0 && d.chance(40) || d.IntN(400) == 0 {
		for range d.IntN(3) {
			object[pick(d, labels)] = d.any(2)
		}
	}
	if schema["x-kubernetes-embedded-resource"] == true {
		object["apiVersion"] = "v1"
		object["kind"] = pick(d, []string{"Pod", "Node"})
		object["metadata"] = d.metadata()
	}
}

// metadata draws the metadata of an object.
func (d *drawer) metadata() node {
	metadata := node{"name": "thing", "namespace": "default"}
	for _, field := range []string{"labels", "annotations"} {
		if d.chance(40) {
			object := node{}
			for range d.IntN(3) {
				object[pick(d, labels)] = pick(d, texts)
			}
			metadata[field] = object
		}
	}
	if d.chance(20) {
		list := []any{}
		for _, name := range []string{"example.com/f1", "example.com/f2"} {
			if d.chance(50) {
				list = append(list, name)
			}
		}
		metadata["finalizers"] = list
	}
	if d.chance(20) {
		list := []any{}
		for _, uid := range []string{"u1", "u2"} {
			if d.chance(50) {
				list = append(list, node{"apiVersion": "v1", "kind": "Node", "name": pick(d, texts), "uid": uid})
			}
		}
		metadata["ownerReferences"] = list
	}
	return metadata
}

// changedValue returns a copy of a value with some changes. The schema can be nil.
func (d *drawer) changedValue(value any, schema node) any {
	if schema == nil {
		schema = node{}
	}
	if d.chance(8) {
		return d.value(schema)
	}
	switch value := value.(type) {
	case node:
		out := node{}
		properties, _ := schema["properties"].(node)
		additional, _ := schema["additionalProperties"].(node)
		for _, name := range sortedNames(value) {
			if d.chance(8) {
				continue
			}
			below, ok := properties[name].(node)
			if !ok {
				below = additional
			}
			out[name] = d.changedValue(value[name], below)
		}
		if d.chance(15) {
			more := node{}
			d.members(more, schema, 30)
			for name, value := range more {
				if _, ok := out[name]; !ok {
					out[name] = value
				}
			}
		}
		return out
	case []any:
		items, _ := schema["items"].(node)
		out := []any{}
		for _, item := range value {
			if !d.chance(10) {
				out = append(out, d.changedValue(item, items))
			}
		}
		if d.chance(20) {
			d.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		if d.chance(20) && items != nil {
			if item := d.value(items); !d.isUnfit(out, item, schema) || d.chance(5) {
				out = slices.Insert(out, d.IntN(len(out)+1), item)
			}
		}
		return out
	default:
		return value
	}
}

func sortedNames(object node) []string {
	result := []string{}
	for name := range object {
		result = append(result, name)
	}
	slices.Sort(result)
	return result
}
