// Tests of client-go's shared informers. The environment selects streaming lists or plain ones.

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// either returns its first argument with streaming lists, and its second one without.
func either[T any](streamed, listed T) T {
	if streaming() {
		return streamed
	}
	return listed
}

// firstRequests returns the requests of an informer that starts at a revision. With streaming lists
// client-go's consistency detector is enabled: it lists again, and panics if the results differ.
func firstRequests(revision int) []string {
	return either(
		[]string{"watch all", fmt.Sprintf("list from %d exactly", revision)},
		[]string{"list from 0", fmt.Sprintf("watch from %d", revision)},
	)
}

// scene is a server with configmap a, at revision 2, and an informer that has delivered it.
type scene struct {
	*server
	configmaps
	*trace
	informer cache.SharedIndexInformer
}

func podScene(t *testing.T, plans ...string) scene {
	t.Helper()
	t.Parallel()
	s := start(t)
	for _, plan := range plans {
		s.inject(plan)
	}
	client := s.client()
	write := s.writer(client)
	write.create("a")
	// A real server has configmaps of its own in other namespaces.
	informer := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default")).Core().V1().ConfigMaps().Informer()
	told := s.follow(informer)
	told.expect("add a 2")
	return scene{server: s, configmaps: write, trace: told, informer: informer}
}

// started returns a scene whose watch has delivered an event. client-go would treat the end of a watch
// without an event as a failure.
func started(t *testing.T) scene {
	t.Helper()
	sc := podScene(t)
	sc.create("b")
	sc.expect("add b 3")
	sc.server.requests("configmaps")
	return sc
}

// asked compares the requests for configmaps since the last call.
func (sc scene) asked(want ...string) {
	sc.server.t.Helper()
	equal(sc.server.t, "requests", sc.requests("configmaps"), want)
}

// keeps compares the store with the server.
func (sc scene) keeps() {
	t := sc.server.t
	t.Helper()
	list, err := sc.configmaps.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var stored []string
	for _, item := range list.Items {
		stored = append(stored, item.Namespace+"/"+item.Name)
	}
	kept := sc.informer.GetStore().ListKeys()
	slices.Sort(kept)
	equal(t, "the store", kept, stored)
}

func TestInformerDeliversExistingObjectsAndEveryChange(t *testing.T) {
	sc := podScene(t)
	sc.create("b", "c")
	sc.label("a", "web")
	sc.delete("b")
	sc.expect("add b 3", "add c 4", "update a 5", "delete b 6")
	sc.asked(firstRequests(2)...)
	sc.keeps()
}

func TestInformerResumesAfterACutWatch(t *testing.T) {
	sc := started(t)
	sc.inject("freeze watch *")
	sc.create("c")
	sc.delete("a")
	sc.inject("cut watch *; thaw watch *")
	sc.create("d")
	sc.expect("add c 4", "delete a 5", "add d 6")
	sc.asked("watch from 3")
	sc.keeps()
}

func TestInformerResumesAfterABrokenConnection(t *testing.T) {
	sc := started(t)
	sc.inject("freeze watch *")
	sc.create("c")
	sc.delete("a")
	sc.inject("break watch *; thaw watch *")
	sc.create("d")
	sc.expect("add c 4", "delete a 5", "add d 6")
	sc.asked("watch from 3")
	sc.keeps()
}

// A relist also delivers unchanged objects: client-go delivers updates without a new revision to handlers
// without a resync period.
func TestInformerListsAgainWhenItsRevisionIsTooOld(t *testing.T) {
	sc := started(t)
	sc.inject("freeze watch *")
	sc.create("c")
	sc.delete("a")
	sc.inject("expire history; cut watch *; thaw watch *")
	sc.expectAnyOrder("add c 4", "vanished a 2", "update b 3")
	sc.create("d")
	sc.expect("add d 6")
	sc.asked(slices.Concat([]string{"watch from 3"}, either(
		[]string{"watch all from 3", "list from 5 exactly"},
		[]string{"list from 3", "watch from 5"},
	))...)
	sc.keeps()
}

func TestInformerResumesFromTheRevisionOfABookmark(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.client()
	write := s.writer(client)
	write.create("a")
	// A timeout loses nothing: everything that was sent before it is delivered.
	soon := int64(3)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.TimeoutSeconds = &soon }))
	told := follow(t, factory.Core().V1().ConfigMaps().Informer())
	told.expect("add a 2")
	write.other("n")
	s.inject("send bookmarks to watch *; expire history")
	s.awaitRequest("watch from 3")
	write.create("b")
	told.expect("add b 4")
	for _, line := range s.requests("configmaps") {
		if !strings.HasPrefix(line, "watch from ") {
			t.Fatalf("an unexpected list: %s", line)
		}
	}
}

func TestInformerWaitsForRetryAfter(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.client()
	write := s.writer(client)
	write.create("a")
	s.inject("list configmaps: 429 retry-after=1 x2; watch configmaps: 429 retry-after=1 x1")
	told := follow(t, informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer())
	told.expect("add a 2")
	write.create("b")
	told.expect("add b 3")
	equal(t, "requests", s.requests("configmaps"), either(
		[]string{"watch all -> 429", "watch all", "list from 2 exactly -> 429", "list from 2 exactly -> 429", "list from 2 exactly"},
		[]string{"list from 0 -> 429", "list from 0 -> 429", "list from 0", "watch from 2 -> 429", "watch from 2"},
	))
}

func TestInformerListsWhenStreamingListsAreNotSupported(t *testing.T) {
	sc := podScene(t, "watch *: refuse streaming")
	sc.create("b")
	sc.expect("add b 3")
	sc.asked(either(
		[]string{"watch all -> 422", "list from 0", "watch from 2"},
		[]string{"list from 0", "watch from 2"},
	)...)
	sc.keeps()
}

func TestInformerRecoversFromServerErrors(t *testing.T) {
	for _, code := range []int{500, 503, 504} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			sc := started(t)
			sc.inject(fmt.Sprintf("watch configmaps: %d x1; list configmaps: %d x1; freeze watch *", code, code))
			sc.create("c")
			sc.delete("a")
			sc.inject("cut watch *; thaw watch *")
			sc.expectAnyOrder("add c 4", "vanished a 2", "update b 3")
			sc.create("d")
			sc.expect("add d 6")
			sc.keeps()
		})
	}
}

func TestInformerListsAgainWhenItsRevisionIsTooLarge(t *testing.T) {
	sc := started(t)
	sc.inject("watch configmaps: 504 too-large x1; freeze watch *")
	sc.create("c")
	sc.inject("cut watch *; thaw watch *")
	sc.expectAnyOrder("add c 4", "update a 2", "update b 3")
	sc.create("d")
	sc.expect("add d 5")
	sc.keeps()
}

func TestInformerResumesWhenConnectionsAreAcceptedAgain(t *testing.T) {
	sc := started(t)
	sc.inject("freeze watch *")
	sc.create("c")
	sc.inject("refuse connections; cut watch *; thaw watch *; accept connections")
	sc.expect("add c 4")
	sc.create("d")
	sc.expect("add d 5")
	sc.keeps()
}

func TestInformerRecoversFromUndecodableEvents(t *testing.T) {
	anew := []string{"add c 4", "update a 2", "update b 3"}
	for name, garbage := range map[string]struct {
		line string
		told []string
	}{
		"unknown type":    {`{"type":"MOVED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}}`, anew},
		"no object":       {`{"type":"ADDED"}`, anew},
		"no JSON":         {`garbage`, anew},
		"not its content": {`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":7}}}`, anew},
		"another kind":    {`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}}`, []string{"add c 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := started(t)
			// The watch is frozen, so that the next event is sent before the garbage is read.
			sc.inject(fmt.Sprintf("freeze watch *; send %q to watch *", garbage.line+"\n"))
			sc.create("c")
			sc.inject("thaw watch *")
			sc.expectAnyOrder(garbage.told...)
			sc.delete("a")
			sc.expect("delete a 5")
			sc.keeps()
		})
	}
}

func TestInformerWithASelectorDeliversObjectsThatStartAndStopMatching(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.client()
	write := s.writer(client)
	write.create("a", "b")
	write.label("a", "web")
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace("default"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=web" }))
	told := s.follow(factory.Core().V1().ConfigMaps().Informer())
	told.expect("add a 4")
	write.label("a", "db")
	write.label("b", "web")
	told.expect("delete a 5", "add b 6")
}

func TestInformerReceivesAllOfManyObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.client()
	write := s.writer(client)
	var lines []string
	// More than client-go's page size of 500.
	for n := range 1200 {
		name := fmt.Sprintf("p%04d", n)
		write.create(name)
		lines = append(lines, fmt.Sprintf("add %s %d", name, n+2))
	}
	s.requests("configmaps")
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	told := s.follow(factory.Core().V1().ConfigMaps().Informer())
	told.expectAnyOrder(lines...)
	write.create("z")
	told.expect("add z 1202")
	equal(t, "requests", s.requests("configmaps"), firstRequests(1201))
}
