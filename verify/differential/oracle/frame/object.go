package frame

import (
	"fmt"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Object is the object that all components store: a name, a revision and index values.
type Object struct {
	metav1.ObjectMeta
	// Values contains the values of the object in each index, joined by commas.
	// The object has no value in an index that is missing here.
	Values map[string]string
}

// Thing is an object in the JSON format of sequences.
type Thing struct {
	// Key is namespace/name, or only a name.
	Key      string            `json:"key"`
	Revision string            `json:"revision"`
	Values   map[string]string `json:"values"`
}

func (thing *Thing) object() *Object {
	namespace, name, found := strings.Cut(thing.Key, "/")
	if !found {
		namespace, name = "", thing.Key
	}
	return &Object{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: thing.Revision},
		Values:     thing.Values,
	}
}

// Objects creates the objects of a list.
func Objects(things []Thing) []any {
	objects := make([]any, len(things))
	for i := range things {
		objects[i] = things[i].object()
	}
	return objects
}

// Object creates the object of an operation.
func (operation *Operation) Object() *Object {
	return operation.Thing.object()
}

// Tombstone creates the tombstone of the operation's object: a deletion that no watch has delivered.
func (operation *Operation) Tombstone() cache.DeletedFinalStateUnknown {
	return cache.DeletedFinalStateUnknown{Key: operation.Thing.Key, Obj: operation.Object()}
}

// ShowObject formats an object or a tombstone. Both sides use the same format.
func ShowObject(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case metav1.Object:
		return fmt.Sprintf("%s@%s", cache.MetaObjectToName(value), value.GetResourceVersion())
	case cache.DeletedFinalStateUnknown:
		return fmt.Sprintf("?%s(%s)", value.Key, ShowObject(value.Obj))
	default:
		return fmt.Sprintf("%T", value)
	}
}

// ShowDelta formats a delta of one object.
func ShowDelta(delta cache.Delta) string {
	return fmt.Sprintf("%s %s", delta.Type, ShowObject(delta.Object))
}

// ShowUnit formats the result of one pop.
func ShowUnit(deltas []string, initial bool) string {
	unit := "[" + strings.Join(deltas, ", ") + "]"
	if initial {
		unit += " initial"
	}
	return unit
}

// Known is the store of a queue's consumer. It lists keys in order, so that the order of a queue does not
// depend on the order of a Go map.
type Known map[string]any

// ListKeys implements cache.KeyLister.
func (known Known) ListKeys() []string {
	keys := make([]string, 0, len(known))
	for key := range known {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// GetByKey implements cache.KeyGetter.
func (known Known) GetByKey(key string) (any, bool, error) {
	object, exists := known[key]
	return object, exists, nil
}
