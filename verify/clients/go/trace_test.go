// Events as lines, so that a test is a script and the trace that it must leave.

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

// trace is what has been told and not yet been expected.
type trace struct {
	t     *testing.T
	lines chan string
}

func newTrace(t *testing.T) *trace {
	return &trace{t: t, lines: make(chan string, 1000)}
}

// follow starts an informer of whatever kind and waits until it is synced.
func follow(t *testing.T, informer cache.SharedIndexInformer) *trace {
	t.Helper()
	told := newTrace(t)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { told.tell("add", obj) },
		UpdateFunc: func(_, obj any) { told.tell("update", obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				told.tell("vanished", tombstone.Obj)
				return
			}
			told.tell("delete", obj)
		},
	})
	must(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(t.Context())
	}()
	// The test's context is cancelled before its cleanups, and the server ends after this one.
	t.Cleanup(func() { <-stopped })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return told
}

func (tr *trace) tell(what string, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		tr.lines <- fmt.Sprintf("%s %T", what, obj)
		return
	}
	tr.lines <- fmt.Sprintf("%s %s %s", what, object.GetName(), object.GetResourceVersion())
}

// next is the next line, or the end of the test.
func (tr *trace) next() string {
	tr.t.Helper()
	select {
	case line := <-tr.lines:
		return line
	case <-time.After(patience):
		tr.t.Fatal("nothing is told")
		return ""
	}
}

// expect compares the next lines, which come in this order.
// What should not come is found out by the next expect: every script ends with an event of its own.
func (tr *trace) expect(lines ...string) {
	tr.t.Helper()
	for _, line := range lines {
		equal(tr.t, "event", tr.next(), line)
	}
}

// expectAnyOrder compares the next lines, which come in an order that client-go does not promise.
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

// configmaps writes configmaps, each write one revision: pods have two for a deletion.
type configmaps struct {
	t      *testing.T
	client kubernetes.Interface
}

func (p configmaps) create(names ...string) {
	p.t.Helper()
	for _, name := range names {
		_, err := p.client.CoreV1().ConfigMaps("default").Create(p.t.Context(), configmap(name), metav1.CreateOptions{})
		must(p.t, err)
	}
}

func (p configmaps) label(name, value string) {
	p.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q}}}`, value)
	_, err := p.client.CoreV1().ConfigMaps("default").Patch(p.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	must(p.t, err)
}

func (p configmaps) delete(name string) {
	p.t.Helper()
	must(p.t, p.client.CoreV1().ConfigMaps("default").Delete(p.t.Context(), name, metav1.DeleteOptions{}))
}

// other writes an object of another kind: one revision that no watch of configmaps hears of.
func (p configmaps) other(name string) {
	p.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := p.client.CoreV1().Nodes().Create(p.t.Context(), node, metav1.CreateOptions{})
	must(p.t, err)
}
