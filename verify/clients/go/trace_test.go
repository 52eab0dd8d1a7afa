// Events as lines of text, so that a test is a script with the expected trace.

package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// trace contains the received events that no test has compared yet.
type trace struct {
	t     *testing.T
	lines chan string
	// show returns the end of a line.
	show func(obj metav1.Object) string
	// rank replaces the revisions of a real server, with which lines end.
	rank func(revision string) string
}

// newTrace returns an empty trace, whose lines end with the revisions of the server.
func newTrace(t *testing.T) *trace {
	return &trace{
		t:     t,
		lines: make(chan string, 1000),
		show:  func(obj metav1.Object) string { return obj.GetName() + " " + obj.GetResourceVersion() },
		rank:  func(revision string) string { return revision },
	}
}

// follow starts an informer and waits until it has synced. It returns the trace of its events.
func (s *server) follow(informer cache.SharedIndexInformer) *trace {
	s.t.Helper()
	told := follow(s.t, informer)
	told.rank = s.rank
	return told
}

// follow returns the trace of an informer's events with the revisions of the server.
func follow(t *testing.T, informer cache.SharedIndexInformer) *trace {
	t.Helper()
	told := newTrace(t)
	told.run(informer)
	return told
}

// run starts an informer whose events belong to the trace, and waits until it has synced.
func (tr *trace) run(informer cache.SharedIndexInformer) {
	t := tr.t
	t.Helper()
	_, err := informer.AddEventHandler(tr.handler())
	must(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(t.Context())
	}()
	// The context of a test is cancelled before its cleanups, and the server's cleanup runs after this one.
	t.Cleanup(func() { <-stopped })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
}

// handler returns a handler that adds its events to the trace.
func (tr *trace) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tr.tell("add", obj) },
		UpdateFunc: func(_, obj any) { tr.tell("update", obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				tr.tell("vanished", tombstone.Obj)
				return
			}
			tr.tell("delete", obj)
		},
	}
}

func (tr *trace) tell(what string, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		tr.lines <- fmt.Sprintf("%s %T", what, obj)
		return
	}
	tr.lines <- what + " " + tr.show(object)
}

// next returns the next line, and fails the test if none arrives.
func (tr *trace) next() string {
	tr.t.Helper()
	select {
	case line := <-tr.lines:
		// The revision is replaced here and not on arrival, because an event can arrive before the response
		// to its write.
		revision := strings.LastIndexByte(line, ' ') + 1
		return line[:revision] + tr.rank(line[revision:])
	case <-time.After(patience):
		tr.t.Fatal("no event arrives")
		return ""
	}
}

// expect compares the next lines, in order.
// An unexpected event fails the next call, so every script must end with an expected event.
func (tr *trace) expect(lines ...string) {
	tr.t.Helper()
	for _, line := range lines {
		equal(tr.t, "event", tr.next(), line)
	}
}

// expectAnyOrder compares the next lines in any order, where client-go guarantees none.
func (tr *trace) expectAnyOrder(lines ...string) {
	tr.t.Helper()
	var told []string
	for range lines {
		told = append(told, tr.next())
	}
	slices.Sort(told)
	slices.Sort(lines)
	equal(tr.t, "events", told, lines)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func configmap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Data:       map[string]string{"settings": strings.Repeat("x", 150)},
	}
}

// configmaps writes configmaps. Each write uses one revision; the deletion of a pod would use two.
type configmaps struct {
	t      *testing.T
	client kubernetes.Interface
	wrote  func()
}

func (s *server) writer(client kubernetes.Interface) configmaps {
	return configmaps{s.t, client, s.wrote}
}

func (p configmaps) create(names ...string) {
	p.t.Helper()
	for _, name := range names {
		_, err := p.client.CoreV1().ConfigMaps("default").Create(p.t.Context(), configmap(name), metav1.CreateOptions{})
		must(p.t, err)
		p.wrote()
	}
}

func (p configmaps) label(name, value string) {
	p.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q}}}`, value)
	_, err := p.client.CoreV1().ConfigMaps("default").Patch(p.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	must(p.t, err)
	p.wrote()
}

func (p configmaps) delete(name string) {
	p.t.Helper()
	must(p.t, p.client.CoreV1().ConfigMaps("default").Delete(p.t.Context(), name, metav1.DeleteOptions{}))
	p.wrote()
}

// other writes an object of another kind, which uses a revision that no watch of configmaps receives.
func (p configmaps) other(name string) {
	p.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := p.client.CoreV1().Nodes().Create(p.t.Context(), node, metav1.CreateOptions{})
	must(p.t, err)
}
