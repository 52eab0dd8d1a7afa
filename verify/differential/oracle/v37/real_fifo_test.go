package v37

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/kube-informer/kube-informer/verify/differential/oracle/frame"
	"k8s.io/client-go/tools/cache"
)

// realFIFO runs operations on cache.RealFIFO, with the options of shared informers or with the default
// options.
func realFIFO(sequence *frame.Sequence) func(*frame.Operation) frame.Answer {
	atomic := sequence.Has("atomic")
	options := cache.RealFIFOOptions{
		KeyFunction:           cache.MetaNamespaceKeyFunc,
		AtomicEvents:          atomic,
		UnlockWhileProcessing: atomic,
		EmitDeltaTypeBookmark: atomic,
	}
	if !atomic {
		options.KnownObjects = frame.Known{}
	}
	queue := cache.NewRealFIFOWithOptions(options)
	return func(operation *frame.Operation) frame.Answer { return fifoStep(queue, operation) }
}

func fifoStep(queue *cache.RealFIFO, operation *frame.Operation) frame.Answer {
	switch operation.Verb {
	case "add":
		return frame.ShowError(queue.Add(operation.Object()))
	case "update":
		return frame.ShowError(queue.Update(operation.Object()))
	case "delete":
		return frame.ShowError(queue.Delete(operation.Object()))
	case "delete_missed":
		return frame.ShowError(queue.Delete(operation.Tombstone()))
	case "burst":
		for i := range operation.Number {
			thing := frame.Thing{Key: fmt.Sprintf("many%d", i), Revision: operation.Text}
			if err := queue.Add(frame.Objects([]frame.Thing{thing})[0]); err != nil {
				return frame.ShowError(err)
			}
		}
		return "ok"
	case "replace":
		return frame.ShowError(queue.Replace(frame.Objects(operation.Things), operation.Text))
	case "resync":
		return frame.ShowError(queue.Resync())
	case "bookmark":
		return frame.ShowError(queue.Bookmark(operation.Text))
	case "has_synced":
		return frame.ShowBool(queue.HasSynced())
	case "close":
		queue.Close()
		return "ok"
	case "pop", "pop_batch":
		return fifoPop(queue, operation.Verb == "pop_batch")
	case "pop_all":
		var units []string
		for waiting(queue) > 0 {
			units = append(units, fifoPop(queue, true).(string))
		}
		return strings.Join(units, "; ")
	default:
		return frame.Unknown(operation)
	}
}

// waiting returns the number of queued items, which the queue does not export. Pop blocks if it is zero.
func waiting(queue *cache.RealFIFO) int {
	return reflect.ValueOf(queue).Elem().FieldByName("items").Len()
}

func fifoPop(queue *cache.RealFIFO, whole bool) frame.Answer {
	if waiting(queue) == 0 && !queue.IsClosed() {
		return "nothing"
	}
	var unit string
	batch := func(deltas []cache.Delta, initial bool) error {
		shown := make([]string, len(deltas))
		for i, delta := range deltas {
			shown[i] = showDelta(delta)
		}
		unit = frame.ShowUnit(shown, initial)
		return nil
	}
	single := func(value any, initial bool) error { return batch(value.(cache.Deltas), initial) }
	var err error
	if whole {
		err = queue.PopBatch(batch, single)
	} else {
		_, err = queue.Pop(single)
	}
	if errors.Is(err, cache.ErrFIFOClosed) {
		return "closed"
	}
	return unit
}

func showDelta(delta cache.Delta) string {
	switch content := delta.Object.(type) {
	case cache.ReplacedAllInfo:
		names := make([]string, len(content.Objects))
		for i, object := range content.Objects {
			names[i] = " " + frame.ShowObject(object)
		}
		return fmt.Sprintf("%s %s:%s", delta.Type, content.ResourceVersion, strings.Join(names, ""))
	case cache.BookmarkInfo:
		return fmt.Sprintf("%s %s", delta.Type, content.ResourceVersion)
	case cache.SyncAllInfo:
		return string(delta.Type)
	default:
		return frame.ShowDelta(delta)
	}
}
