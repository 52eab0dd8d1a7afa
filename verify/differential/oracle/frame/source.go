package frame

import (
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// many is more than the number of events of a sequence, so that the server never waits for its watcher.
const many = 4096

// source is the server that an informer lists and watches. Only operations change it. The Rust side has a
// server with the same behaviour.
type source struct {
	lock     sync.Mutex
	objects  map[string]*metav1.PartialObjectMetadata
	history  []change
	revision int
	// Watches from an earlier revision have expired.
	compacted int
	// Number of requests to reject.
	refusals int
	// Whether events are currently held back from the watch.
	lags    bool
	watcher *stream
	// Number of history entries that the watcher has received.
	told int
	// Whether a watch can start with all objects.
	streams bool
}

type change struct {
	revision int
	event    watch.Event
}

// stream is an open watch.
type stream struct {
	source *source
	events chan watch.Event
}

func newSource(streams bool) *source {
	// A collection has a revision before it has objects.
	return &source{objects: map[string]*metav1.PartialObjectMetadata{}, revision: 1, streams: streams}
}

// IsWatchListSemanticsUnSupported returns whether reflectors must not request streaming lists.
func (s *source) IsWatchListSemanticsUnSupported() bool { return !s.streams }

// List implements cache.Lister.
func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.refuses() {
		return nil, apierrors.NewServiceUnavailable("refused")
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.revision)}}
	for _, key := range s.keys() {
		list.Items = append(list.Items, *s.objects[key])
	}
	return list, nil
}

// Watch implements cache.Watcher.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.refuses() {
		return nil, apierrors.NewServiceUnavailable("refused")
	}
	watcher := &stream{s, make(chan watch.Event, many)}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		for _, key := range s.keys() {
			watcher.events <- watch.Event{Type: watch.Added, Object: s.objects[key]}
		}
		end := s.bookmark()
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		watcher.events <- watch.Event{Type: watch.Bookmark, Object: end}
		s.told = len(s.history)
	} else {
		revision, err := strconv.Atoi(options.ResourceVersion)
		if err != nil || revision < s.compacted {
			return nil, apierrors.NewResourceExpired("expired")
		}
		s.told, _ = slices.BinarySearchFunc(s.history, revision+1, func(change change, wanted int) int {
			return change.revision - wanted
		})
	}
	s.watcher = watcher
	s.tell()
	return watcher, nil
}

// Stop implements watch.Interface.
func (watcher *stream) Stop() {
	watcher.source.lock.Lock()
	defer watcher.source.lock.Unlock()
	if watcher.source.watcher == watcher {
		watcher.source.watcher = nil
	}
}

// ResultChan implements watch.Interface.
func (watcher *stream) ResultChan() <-chan watch.Event { return watcher.events }

func (s *source) refuses() bool {
	refuses := s.refusals > 0
	if refuses {
		s.refusals--
	}
	return refuses
}

func (s *source) keys() []string {
	keys := make([]string, 0, len(s.objects))
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *source) bookmark() *metav1.PartialObjectMetadata {
	bookmark := &metav1.PartialObjectMetadata{}
	bookmark.ResourceVersion = strconv.Itoa(s.revision)
	return bookmark
}

func (s *source) note(revision string, kind watch.EventType, object *metav1.PartialObjectMetadata) {
	s.revision, _ = strconv.Atoi(revision)
	s.history = append(s.history, change{s.revision, watch.Event{Type: kind, Object: object}})
}

// tell sends the undelivered events to the watcher.
func (s *source) tell() {
	for s.watcher != nil && !s.lags && s.told < len(s.history) {
		s.watcher.events <- s.history[s.told].event
		s.told++
	}
}

// do executes an operation on the server.
func (s *source) do(operation *Operation) {
	s.lock.Lock()
	defer s.lock.Unlock()
	thing := operation.Thing
	switch operation.Verb {
	case "put":
		s.put(thing)
	case "remove":
		s.remove(thing.Key, thing.Revision)
	case "recreate":
		s.remove(thing.Key, operation.Text)
		s.put(thing)
	case "stray":
		s.note(thing.Revision, watch.Deleted, partial(thing))
	case "burst", "join_amid":
		for i := range operation.Batch {
			one := operation.Batch[i]
			if one.Verb == "remove" {
				s.remove(one.Thing.Key, one.Thing.Revision)
			} else {
				s.put(one.Thing)
			}
		}
	case "bookmark":
		s.revision, _ = strconv.Atoi(operation.Text)
		if s.watcher != nil && !s.lags {
			s.watcher.events <- watch.Event{Type: watch.Bookmark, Object: s.bookmark()}
		}
	case "lag":
		s.lags = true
	case "catch_up":
		s.lags = false
	case "close":
		s.end(operation)
	case "expire":
		s.compacted = s.revision
		if s.watcher != nil {
			expired := apierrors.NewResourceExpired("expired").Status()
			s.watcher.events <- watch.Event{Type: watch.Error, Object: &expired}
		}
		s.end(operation)
	default:
		Unknown(operation)
	}
	s.tell()
}

func (s *source) end(operation *Operation) {
	s.refusals = int(operation.Number)
	s.lags = false
	if s.watcher != nil {
		close(s.watcher.events)
		s.watcher = nil
	}
}

func (s *source) put(thing *Thing) {
	object := partial(thing)
	if old, exists := s.objects[thing.Key]; exists {
		object.UID = old.UID
		s.note(thing.Revision, watch.Modified, object)
	} else {
		object.UID = types.UID("born at " + thing.Revision)
		s.note(thing.Revision, watch.Added, object)
	}
	s.objects[thing.Key] = object
}

func (s *source) remove(key, revision string) {
	if old, exists := s.objects[key]; exists {
		last := old.DeepCopy()
		last.ResourceVersion = revision
		s.note(revision, watch.Deleted, last)
		delete(s.objects, key)
	}
}

func partial(thing *Thing) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: thing.object().ObjectMeta}
	object.Labels = thing.Values
	return object
}
