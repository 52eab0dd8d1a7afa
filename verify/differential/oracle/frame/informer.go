package frame

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// operationTime is the duration of an operation. The informer starts half a second before the end of an
	// operation, so that no operation coincides with a resync, which occurs at whole seconds.
	operationTime = 2 * time.Second
	startTime     = 2500 * time.Millisecond
	// recoveryTime is enough for both sides to recover from a fault: at most four pauses of a minute.
	recoveryTime = 300 * time.Second
	// defaultResync is the default resync period of an informer with resyncs.
	defaultResync = 20 * time.Second
	// never is the resync period of all other informers: longer than any sequence. A period of zero would use
	// a channel that the reflectors of 0.32 share across bubbles, which would stop the virtual time.
	never = 10_000 * time.Hour
)

// inOrder contains the verbs whose events have a defined order across objects: only the watch delivers them.
var inOrder = []string{"put", "remove", "recreate", "stray", "burst", "catch_up"}

type informer struct {
	sequence  *Sequence
	source    *source
	informer  cache.SharedIndexInformer
	stop      chan struct{}
	started   bool
	stopped   bool
	run       sync.WaitGroup
	listeners []*listener
	// The last reported value of each fact, which is reported again only when it changes.
	said map[string]string
}

type listener struct {
	name         string
	filter       string
	registration cache.ResourceEventHandlerRegistration

	lock   sync.Mutex
	events []told
	// Blocks the callbacks until it is closed, if it is not nil.
	hold chan struct{}
	// The last delivered objects, by key. Set for a listener that is added while changes are delivered,
	// because the order of its events is undefined.
	view map[string]string
}

type told struct{ key, text string }

// gates enables streaming lists for the sequences that use them.
type gates struct {
	features.Gates
	streams bool
}

var allowed = &gates{Gates: features.FeatureGates()}

func init() {
	// Replaced before the first read, because client-go reports an error otherwise.
	features.ReplaceFeatureGates(allowed)
}

func (gates *gates) Enabled(feature features.Feature) bool {
	if feature == features.WatchListClient {
		return gates.streams
	}
	return gates.Gates.Enabled(feature)
}

// Informer runs a sequence on cache.SharedIndexInformer, with a source that only operations change.
func Informer(sequence *Sequence) []Answer {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	allowed.streams = sequence.Has("streaming")
	i := &informer{sequence: sequence, source: newSource(allowed.streams), stop: make(chan struct{}), said: map[string]string{}}
	resync := never
	if sequence.Has("resync") {
		resync = defaultResync
	}
	i.informer = cache.NewSharedIndexInformer(i.source, &metav1.PartialObjectMetadata{}, resync, cache.Indexers{})
	// The default handler logs, and blocks while it does.
	quiet := func(*cache.Reflector, error) {}
	if err := i.informer.SetWatchErrorHandler(quiet); err != nil {
		panic(err)
	}
	answers := make([]Answer, len(sequence.Operations))
	for at := range sequence.Operations {
		operation := &sequence.Operations[at]
		result := i.step(operation)
		time.Sleep(i.duration(operation))
		synctest.Wait()
		answers[at] = i.say(operation, result)
	}
	i.release()
	i.end()
	i.run.Wait()
	return answers
}

func (i *informer) duration(operation *Operation) time.Duration {
	switch {
	case !i.started && operation.Verb != "pass":
		// The periods of handlers count from their registration or from the start, which must be the same
		// time.
		return 0
	case operation.Verb == "expire" || operation.Verb == "close" && operation.Number > 0:
		return recoveryTime
	case operation.Verb == "start" && operation.Number > 0:
		return startTime + recoveryTime
	case operation.Verb == "start":
		return startTime
	case operation.Verb == "pass":
		return time.Duration(operation.Number) * time.Second
	default:
		return operationTime
	}
}

func (i *informer) step(operation *Operation) string {
	switch operation.Verb {
	case "start":
		if !i.started {
			i.started = true
			i.source.refusals = int(operation.Number)
			i.run.Go(func() { i.informer.Run(i.stop) })
		}
	case "stop":
		i.release()
		synctest.Wait()
		i.end()
	case "pass":
	case "add_handler", "add_held":
		return ShowError(i.add(operation))
	case "join_amid":
		i.source.do(operation)
		return ShowError(i.add(operation))
	case "remove_handler":
		i.remove(operation.Text)
	case "hold":
		if l := i.find(operation.Text); l != nil {
			l.keep()
		}
	case "release":
		if l := i.find(operation.Text); l != nil {
			l.release()
		}
	case "add_index":
		return ShowError(i.informer.AddIndexers(cache.Indexers{operation.Index: labelled(operation.Index)}))
	case "by_index":
		objects, err := i.informer.GetIndexer().ByIndex(operation.Index, operation.Text)
		if err != nil {
			return "error"
		}
		return show(objects)
	default:
		i.source.do(operation)
	}
	return "ok"
}

func labelled(label string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		value, exists := object.(*metav1.PartialObjectMetadata).Labels[label]
		if !exists {
			return nil, nil
		}
		return []string{value}, nil
	}
}

func (i *informer) release() {
	for _, l := range i.listeners {
		l.release()
	}
}

func (i *informer) end() {
	if i.started && !i.stopped {
		i.stopped = true
		close(i.stop)
	}
}

func (i *informer) find(name string) *listener {
	at := slices.IndexFunc(i.listeners, func(l *listener) bool { return l.name == name })
	if at < 0 {
		return nil
	}
	return i.listeners[at]
}

func (i *informer) add(operation *Operation) error {
	l := &listener{name: operation.Text, filter: operation.Index}
	switch operation.Verb {
	case "join_amid":
		l.view = map[string]string{}
	case "add_held":
		l.keep()
	}
	var handler cache.ResourceEventHandler = l
	if l.filter != "" {
		handler = cache.FilteringResourceEventHandler{FilterFunc: l.passes, Handler: l}
	}
	var err error
	if period := time.Duration(operation.Number) * time.Second; l.view == nil && period > 0 {
		l.registration, err = i.informer.AddEventHandlerWithResyncPeriod(handler, period)
	} else {
		l.registration, err = i.informer.AddEventHandler(handler)
	}
	if err == nil {
		i.listeners = append(i.listeners, l)
	}
	return err
}

func (i *informer) remove(name string) {
	if l := i.find(name); l != nil {
		// It fails only for handlers of another informer.
		_ = i.informer.RemoveEventHandler(l.registration)
		l.release()
		i.listeners = slices.DeleteFunc(i.listeners, func(other *listener) bool { return other == l })
	}
}

func (i *informer) say(operation *Operation, result string) string {
	var parts []string
	if result != "ok" {
		parts = append(parts, result)
	}
	fact := func(name, value string) {
		if i.said[name] != value {
			i.said[name] = value
			parts = append(parts, strings.TrimSpace(name+" "+value))
		}
	}
	fact("synced", when(i.informer.HasSynced()))
	fact("stopped", when(i.informer.IsStopped()))
	fact("revision", i.informer.LastSyncResourceVersion())
	fact("store", show(i.informer.GetStore().List()))
	ordered := !i.sequence.Has("delta_fifo") && !i.sequence.Has("resync") && slices.Contains(inOrder, operation.Verb)
	for _, l := range i.listeners {
		if events := l.take(ordered); events != "" {
			parts = append(parts, l.name+": "+events)
		}
		fact(l.name+" synced", when(l.registration.HasSynced()))
	}
	return strings.Join(parts, "; ")
}

func when(is bool) string {
	if is {
		return "now"
	}
	return ""
}

func show(objects []any) string {
	shown := make([]string, len(objects))
	for at, object := range objects {
		shown[at] = ShowObject(object)
	}
	slices.Sort(shown)
	return "[" + strings.Join(shown, " ") + "]"
}

func (l *listener) passes(value any) bool {
	if tombstone, is := value.(cache.DeletedFinalStateUnknown); is {
		value = tombstone.Obj
	}
	return value.(*metav1.PartialObjectMetadata).Labels["app"] == l.filter
}

func (l *listener) keep() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.hold == nil {
		l.hold = make(chan struct{})
	}
}

func (l *listener) release() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.hold != nil {
		close(l.hold)
		l.hold = nil
	}
}

func (l *listener) tell(of any, text string, now string) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(of)
	if err != nil {
		panic(err)
	}
	l.lock.Lock()
	hold := l.hold
	l.lock.Unlock()
	// Events are recorded when the callback ends: the event that blocks a handler depends on earlier events
	// that may be merged.
	if hold != nil {
		<-hold
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.view == nil {
		l.events = append(l.events, told{key, text})
	} else if now == "" {
		delete(l.view, key)
	} else {
		l.view[key] = now
	}
}

// OnAdd implements cache.ResourceEventHandler.
func (l *listener) OnAdd(object any, initial bool) {
	text := "+" + ShowObject(object)
	if initial {
		text += " initial"
	}
	l.tell(object, text, ShowObject(object))
}

// OnUpdate implements cache.ResourceEventHandler.
func (l *listener) OnUpdate(old, new any) {
	l.tell(new, fmt.Sprintf("~%s %s", ShowObject(old), ShowObject(new)), ShowObject(new))
}

// OnDelete implements cache.ResourceEventHandler.
func (l *listener) OnDelete(object any) {
	l.tell(object, "-"+ShowObject(object), "")
}

// take formats the events since the last call. If the order across objects is undefined, events are grouped
// by object.
func (l *listener) take(ordered bool) string {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.view != nil {
		var now []string
		for _, object := range l.view {
			now = append(now, object)
		}
		l.view = nil
		slices.Sort(now)
		return "joined [" + strings.Join(now, " ") + "]"
	}
	events := l.events
	l.events = nil
	if !ordered {
		slices.SortStableFunc(events, func(a, b told) int { return strings.Compare(a.key, b.key) })
	}
	texts := make([]string, len(events))
	for at, event := range events {
		texts[at] = event.text
	}
	return strings.Join(repeats(texts), ", ")
}

// repeats replaces consecutive equal texts by one text with their number.
func repeats(texts []string) []string {
	var shown []string
	for begin := 0; begin < len(texts); {
		end := begin + 1
		for end < len(texts) && texts[end] == texts[begin] {
			end++
		}
		text := texts[begin]
		if end-begin > 1 {
			text += fmt.Sprintf(" ×%d", end-begin)
		}
		shown = append(shown, text)
		begin = end
	}
	return shown
}
