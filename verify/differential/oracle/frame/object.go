package frame

import (
	"fmt"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Object is what all components keep: a name, a revision, and what index functions find in it.
type Object struct {
	metav1.ObjectMeta
	// Values has, by the name of an index, the values of this object, joined by commas.
	// An index that is not named has none for it.
	Values map[string]string
}

// Thing is an object on the wire.
type Thing struct {
	// Key is namespace/name, or a name alone.
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

// Objects makes what a list brings.
func Objects(things []Thing) []any {
	objects := make([]any, len(things))
	for i := range things {
		objects[i] = things[i].object()
	}
	return objects
}

// Object makes what an operation is about.
func (operation *Operation) Object() *Object {
	return operation.Thing.object()
}

// Tombstone makes a deletion that was missed.
func (operation *Operation) Tombstone() cache.DeletedFinalStateUnknown {
	return cache.DeletedFinalStateUnknown{Key: operation.Thing.Key, Obj: operation.Object()}
}

// ShowObject writes an object, or a tombstone, as both sides do.
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

// ShowDelta writes a delta about one object.
func ShowDelta(delta cache.Delta) string {
	return fmt.Sprintf("%s %s", delta.Type, ShowObject(delta.Object))
}

// ShowUnit writes what one pop hands out.
func ShowUnit(deltas []string, initial bool) string {
	unit := "[" + strings.Join(deltas, ", ") + "]"
	if initial {
		unit += " initial"
	}
	return unit
}

// Known is what a store has, lent to a queue. It lists keys in order, so that queues are not the ones
// whose order is Go's order of maps.
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
