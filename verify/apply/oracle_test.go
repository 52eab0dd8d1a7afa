// Draws sequences of writes to objects of custom kinds, and writes what Kubernetes stores after each of them.
//
// Arguments: the first seed, and the number of sequences. Each sequence is one line of JSON.
package apply

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// sequence is what one seed draws.
type sequence struct {
	Seed uint64 `json:"seed"`
	// Schemas has the schemas of both versions, before and after the change of the definition.
	Schemas []map[string]any `json:"schemas"`
	Steps   []step           `json:"steps"`
}

// step is one write, with its result.
type step struct {
	// Schema is the index of the schemas in force.
	Schema      int      `json:"schema"`
	Verb        string   `json:"verb"`
	Manager     string   `json:"manager"`
	Version     string   `json:"version"`
	Subresource string   `json:"subresource"`
	Ignored     []string `json:"ignored"`
	Force       bool     `json:"force"`
	// Time is the time of the write in seconds.
	Time   int64  `json:"time"`
	Live   node   `json:"live"`
	Object node   `json:"object"`
	Result node   `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
	// Conflict has the causes of a conflict.
	Causes []string `json:"causes,omitempty"`
	Code   int32    `json:"code,omitempty"`
}

func TestWrite(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	first, err := strconv.ParseUint(flag.Arg(0), 10, 64)
	must(err)
	count, err := strconv.ParseUint(flag.Arg(1), 10, 64)
	must(err)
	out := json.NewEncoder(os.Stdout)
	for seed := first; seed < first+count; seed++ {
		synctest.Test(t, func(*testing.T) { must(out.Encode(draw(seed))) })
	}
}

func draw(seed uint64) sequence {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0))}
	before := map[string]any{"v1": d.root(), "v2": nil}
	before["v2"] = d.changed(before["v1"].(node))
	if d.chance(10) {
		before["v2"] = nil
	}
	if d.chance(5) {
		before["v1"] = nil
	}
	after := map[string]any{}
	for version, schema := range before {
		if schema != nil {
			schema = d.changed(schema.(node))
		}
		after[version] = schema
	}
	result := sequence{Seed: seed, Schemas: []map[string]any{before, after}}
	kinds := []*kind{newKind(before), newKind(after)}
	var live node
	applied := map[string]node{}
	schema := 0
	// A crowded object has many managers, so that the oldest ones are merged.
	isCrowded := d.chance(5)
	count := 4 + d.IntN(12)
	if isCrowded {
		count *= 3
	}
	for range count {
		if d.chance(5) {
			schema = 1
		}
		time.Sleep(time.Duration(pick(d, []int{0, 0, 1, 60})) * time.Second)
		step := d.step(live, applied, result.Schemas[schema])
		if isCrowded && live != nil && step.Verb == "update" && d.chance(85) {
			step.Manager = fmt.Sprint("m", d.IntN(30))
			step.Object = copyOf(step.Live)
			step.Object["metadata"].(node)["annotations"] = addedTo(step.Object, step.Manager)
		}
		step.Schema = schema
		step.Time = time.Now().Unix()
		step.run(kinds[schema])
		if step.Result != nil {
			// What the storage sets.
			live = copyOf(step.Result)
			live["metadata"].(node)["uid"] = "u"
			if step.Verb == "apply" {
				applied[step.Manager] = step.Object
			}
		}
		result.Steps = append(result.Steps, step)
	}
	return result
}

// addedTo returns the annotations of an object with one more.
func addedTo(object node, name string) node {
	annotations, _ := object["metadata"].(node)["annotations"].(node)
	if annotations == nil {
		annotations = node{}
	}
	annotations[name] = "x"
	return annotations
}

// step draws a write to an object, or its creation if live is nil.
func (d *drawer) step(live node, applied map[string]node, schemas map[string]any) step {
	version := "v1"
	if d.chance(15) {
		version = "v2"
	}
	schema, _ := schemas[version].(node)
	result := step{Version: version, Verb: "update", Ignored: []string{}}
	result.Manager = pick(d, []string{"kubectl", "one", "two", "three", "", "<é\">"})
	if d.chance(10) {
		result.Manager = fmt.Sprint("m", d.IntN(15))
	}
	if d.chance(30) {
		result.Ignored = []string{"status"}
		if d.chance(30) {
			result.Subresource, result.Ignored = "status", []string{"spec", "metadata"}
		}
	}
	result.Live = node{"apiVersion": group + "/" + version, "kind": kindName}
	if live != nil {
		result.Live = copyOf(live)
		result.Live["apiVersion"] = group + "/" + version
	}
	if d.chance(55) {
		result.Verb, result.Force = "apply", d.chance(40)
		result.Object = d.configuration(applied[result.Manager], version, schema)
		return result
	}
	result.Object = d.updated(live, version, schema)
	return result
}

// configuration draws an object to apply, mostly a changed form of the last one.
func (d *drawer) configuration(last node, version string, schema node) node {
	var object node
	if last != nil && d.chance(70) {
		object = copyOf(last)
		for _, field := range []string{"spec", "status"} {
			if value, ok := object[field]; ok {
				object[field] = d.changedValue(value, property(schema, field))
			}
		}
		if d.chance(20) {
			object["metadata"] = d.metadata()
		}
	} else {
		object = d.whole(schema)
	}
	object["apiVersion"], object["kind"] = group+"/"+version, kindName
	if d.IntN(100) == 0 {
		object["apiVersion"] = group + "/v9"
	}
	if d.IntN(100) == 0 {
		object["metadata"].(node)["managedFields"] = []any{}
	}
	return object
}

// updated draws a new state of an object.
func (d *drawer) updated(live node, version string, schema node) node {
	if live == nil {
		object := d.whole(schema)
		object["apiVersion"], object["kind"] = group+"/"+version, kindName
		return object
	}
	object := copyOf(live)
	object["apiVersion"] = group + "/" + version
	for _, field := range []string{"spec", "status"} {
		if value, ok := object[field]; ok && d.chance(70) {
			object[field] = d.changedValue(value, property(schema, field))
		}
	}
	metadata := object["metadata"].(node)
	if d.chance(20) {
		managed := metadata["managedFields"]
		metadata = d.metadata()
		metadata["uid"] = "u"
		if managed != nil {
			metadata["managedFields"] = managed
		}
		object["metadata"] = metadata
	}
	if d.chance(15) {
		// Client-side apply.
		last := d.configuration(nil, version, schema)
		text, err := json.Marshal(last)
		must(err)
		for _, field := range []string{"spec", "status"} {
			if value, ok := last[field]; ok {
				object[field] = value
			}
		}
		annotations, _ := metadata["annotations"].(node)
		if annotations == nil {
			annotations = node{}
		}
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(text)
		metadata["annotations"] = annotations
	}
	d.changeManaged(metadata)
	return object
}

// changeManaged changes the managed fields of a request, as few clients do.
func (d *drawer) changeManaged(metadata node) {
	entries, _ := metadata["managedFields"].([]any)
	switch d.IntN(40) {
	case 0, 1, 2:
		delete(metadata, "managedFields")
	case 3:
		metadata["managedFields"] = []any{}
	case 4:
		metadata["managedFields"] = []any{node{}}
	case 5:
		if len(entries) > 0 {
			metadata["managedFields"] = slices.Delete(slices.Clone(entries), 0, 1)
		}
	case 6:
		if len(entries) > 0 {
			entry := entries[d.IntN(len(entries))].(node)
			name := pick(d, []string{"operation", "apiVersion", "fieldsType", "time", "fieldsV1", "manager", "subresource"})
			switch {
			case name == "apiVersion" && d.chance(50):
				entry[name] = group + "/v2"
			case name == "apiVersion" && d.chance(50):
				entry[name] = group + "/v9"
			case name == "fieldsV1":
				entry[name] = pick(d, []node{
					{}, {"f:spec": node{}}, {"x:1": node{}, "f:spec": node{".": node{}, "f:a": node{}}},
					{"f:spec": node{"f:a": node{"i:1": node{}, "v:1": node{}, "k:{\"key\":\"x\",\"a\":1}": node{}}}},
					{"f": node{}}, {"i:x": node{}}, {"f:spec": node{"f:a": node{"v:[": node{}}}},
				})
			default:
				delete(entry, name)
			}
		}
	}
}

func (d *drawer) whole(schema node) node {
	object := node{"metadata": d.metadata()}
	for _, field := range []string{"spec", "status"} {
		if d.chance(80) {
			object[field] = d.value(property(schema, field))
		}
	}
	if d.IntN(200) == 0 {
		object["other"] = "x"
	}
	return object
}

func property(schema node, name string) node {
	properties, _ := schema["properties"].(node)
	result, _ := properties[name].(node)
	return result
}

// run writes the object, and sets the result.
func (s *step) run(kind *kind) {
	manager := kind.fieldManager(s.Version, s.Subresource, s.Ignored)
	live := &unstructured.Unstructured{Object: copyOf(s.Live)}
	object := &unstructured.Unstructured{Object: copyOf(s.Object)}
	if s.Verb == "update" {
		s.Result = manager.UpdateNoErrors(live, object, s.Manager).(*unstructured.Unstructured).Object
		s.Result = copyOf(s.Result)
		return
	}
	result, err := manager.Apply(live, object, s.Manager, s.Force)
	if err == nil {
		s.Result = copyOf(result.(*unstructured.Unstructured).Object)
		return
	}
	s.Error, s.Code = err.Error(), 500
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		s.Code = status.ErrStatus.Code
		if status.ErrStatus.Details != nil {
			for _, cause := range status.ErrStatus.Details.Causes {
				s.Causes = append(s.Causes, strings.Join([]string{string(cause.Type), cause.Field, cause.Message}, "|"))
			}
		}
		slices.Sort(s.Causes)
	}
}

// copyOf returns a copy as a client receives it.
func copyOf(object node) node {
	text, err := json.Marshal(object)
	must(err)
	var result unstructured.Unstructured
	if _, ok := object["kind"]; !ok {
		panic(string(text))
	}
	must(result.UnmarshalJSON(text))
	return result.Object
}
