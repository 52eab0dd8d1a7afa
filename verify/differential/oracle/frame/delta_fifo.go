package frame

import (
	"errors"
	"reflect"

	"k8s.io/client-go/tools/cache"
)

// Requeue returns the error with which a consumer puts a unit back; nil if the version does not support it.
var Requeue func() error

// reading is the interface of methods that DeltaFIFO had until 0.32.
type reading interface {
	AddIfNotPresent(obj any) error
	GetByKey(key string) (any, bool, error)
	List() []any
	ListKeys() []string
}

type deltaFIFO struct {
	queue *cache.DeltaFIFO
	known Known
	// Whether popped changes are applied to known, as in an informer.
	keeps bool
	// The unit that was popped last.
	last cache.Deltas
}

// DeltaFIFO runs operations on cache.DeltaFIFO and the store of its consumer.
func DeltaFIFO(sequence *Sequence) func(*Operation) Answer {
	fifo := &deltaFIFO{known: Known{}, keeps: sequence.Has("known")}
	options := cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: sequence.Has("emit_replaced")}
	if fifo.keeps {
		options.KnownObjects = fifo.known
	}
	fifo.queue = cache.NewDeltaFIFOWithOptions(options)
	return fifo.step
}

func (fifo *deltaFIFO) step(operation *Operation) Answer {
	switch operation.Verb {
	case "add":
		return ShowError(fifo.queue.Add(operation.Object()))
	case "update":
		return ShowError(fifo.queue.Update(operation.Object()))
	case "delete":
		return ShowError(fifo.queue.Delete(operation.Object()))
	case "delete_missed":
		return ShowError(fifo.queue.Delete(operation.Tombstone()))
	case "replace":
		return ShowError(fifo.queue.Replace(Objects(operation.Things), operation.Text))
	case "resync":
		return ShowError(fifo.queue.Resync())
	case "know":
		fifo.known[operation.Thing.Key] = operation.Object()
		return "ok"
	case "unknow":
		delete(fifo.known, operation.Text)
		return "ok"
	case "has_synced":
		return ShowBool(fifo.queue.HasSynced())
	case "close":
		fifo.queue.Close()
		return "ok"
	case "pop":
		return fifo.pop(nil)
	case "pop_requeue":
		return fifo.pop(Requeue())
	default:
		return fifo.read(operation)
	}
}

func (fifo *deltaFIFO) read(operation *Operation) Answer {
	queue, ok := any(fifo.queue).(reading)
	if !ok {
		return nil
	}
	switch operation.Verb {
	case "put_back":
		if fifo.last == nil {
			return "nothing"
		}
		err := queue.AddIfNotPresent(fifo.last)
		fifo.last = nil
		return ShowError(err)
	case "get":
		deltas, exists, _ := queue.GetByKey(operation.Text)
		if !exists {
			return "nothing"
		}
		return ShowUnit(showDeltas(deltas.(cache.Deltas)), false)
	case "list":
		set := Set{}
		for _, newest := range queue.List() {
			set = append(set, ShowObject(newest))
		}
		return set
	case "list_keys":
		return Set(queue.ListKeys())
	default:
		return Unknown(operation)
	}
}

// pop returns the next unit. With a refusal, the consumer returns that error instead of applying the unit.
func (fifo *deltaFIFO) pop(refusal error) Answer {
	// Pop would block on an empty queue, and the queue does not export its length.
	if reflect.ValueOf(fifo.queue).Elem().FieldByName("queue").Len() == 0 && !fifo.queue.IsClosed() {
		return "nothing"
	}
	var unit string
	popped, err := fifo.queue.Pop(func(value any, initial bool) error {
		deltas := value.(cache.Deltas)
		unit = ShowUnit(showDeltas(deltas), initial)
		if refusal == nil {
			fifo.keep(deltas)
		}
		return refusal
	})
	if errors.Is(err, cache.ErrFIFOClosed) {
		return "closed"
	}
	if refusal == nil {
		fifo.last = popped.(cache.Deltas)
	}
	return unit
}

func (fifo *deltaFIFO) keep(deltas cache.Deltas) {
	if !fifo.keeps {
		return
	}
	for _, delta := range deltas {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(delta.Object)
		if err != nil {
			panic(err)
		}
		if delta.Type == cache.Deleted {
			delete(fifo.known, key)
		} else {
			fifo.known[key] = delta.Object
		}
	}
}

func showDeltas(deltas cache.Deltas) []string {
	shown := make([]string, len(deltas))
	for i, delta := range deltas {
		shown[i] = ShowDelta(delta)
	}
	return shown
}
