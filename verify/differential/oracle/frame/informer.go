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
	// An operation takes so long. The informer starts half a second before one of them ends, so that no
	// operation meets a resync, which comes after whole seconds.
	operationTime = 2 * time.Second
	startTime     = 2500 * time.Millisecond
	// Within it everyone has recovered from a fault: at most four pauses of a minute.
	recoveryTime = 300 * time.Second
	// The default resync period of an informer that has one.
	defaultResync = 20 * time.Second
	// That of all others: never, as far as sequences go. None at all would be a channel that reflectors of
	// 0.32 share, of another bubble, and then time stands still.
	never = 10_000 * time.Hour
)

// inOrder are the verbs whose events have one order across objects: only the watch tells them.
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
	// What was said last of each fact, which is said again only when it changes.
	said map[string]string
}

type listener struct {
	name         string
	filter       string
	registration cache.ResourceEventHandlerRegistration

	lock   sync.Mutex
	events []told
	// While it is there, callbacks wait for its end.
	hold chan struct{}
	// What it has been told of, by key; for one that joins amid changes, of which the order is not
	// defined.
	view map[string]string
}

type told struct{ key, text string }

// gates lets lists be streamed as a sequence wants it.
type gates struct {
	features.Gates
	streams bool
}

var allowed = &gates{Gates: features.FeatureGates()}

func init() {
	// Before anyone has asked them, or client-go complains.
	features.ReplaceFeatureGates(allowed)
}

func (gates *gates) Enabled(feature features.Feature) bool {
	if feature == features.WatchListClient {
		return gates.streams
	}
	return gates.Gates.Enabled(feature)
}

// Informer is cache.SharedIndexInformer over a source that does as it is told.
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
	// The default one logs, and waits while it does.
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
		// Periods of handlers count from here, or from the start: the same moment.
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
		// It fails for handlers of another informer only.
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
	// Told when the callback ends: with which event a handler is held up depends on what it was told
	// before that need not have been.
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

// take writes what has been told. Where the order of objects is not defined, that of each is.
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

// repeats writes what comes several times in a row once, with how often.
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
