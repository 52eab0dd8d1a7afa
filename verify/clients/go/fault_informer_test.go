// Tests of faults with client-go's shared informers. The environment selects streaming lists or plain ones.

package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/informers"
)

// informed is a fault on the second watch of an informer, and its expected effect.
//
// The informer has the configmaps a and b, at revisions 2 and 3. While its watch is frozen, c is created at 4
// and a is deleted at 5; then the watch ends. After the informer has received these changes, d is created at
// 6.
type informed struct {
	plan string
	// told contains the events in order. Those in parentheses follow from a relist, in any order.
	told string
	// asked contains the requests from the second watch on.
	asked []string
	// kept contains the keys in the store at the end.
	kept string
}

// anew returns the requests of an informer that lists again after it has received a revision.
func anew(from, to int) []string {
	return either(
		[]string{fmt.Sprintf("watch all from %d", from), fmt.Sprintf("list from %d exactly", to)},
		[]string{fmt.Sprintf("list from %d", from), fmt.Sprintf("watch from %d", to)},
	)
}

func TestFaultsUnderInformers(t *testing.T) {
	t.Parallel()
	whole := "[default/b default/c default/d]"
	undone := slices.Concat([]string{"watch from 3"}, anew(4, 5))
	for _, f := range []informed{
		{plan: `watch configmaps: drop event 1 x1`, told: "delete a 5", asked: []string{"watch from 3"}, kept: "[default/b default/d]"},
		{plan: `watch configmaps: duplicate event 1 x1`, told: "add c 4, update c 4, delete a 5", asked: []string{"watch from 3"}, kept: whole},
		{plan: `watch configmaps: swap event 1 x1`, told: "delete a 5, add c 4", asked: []string{"watch from 3"}, kept: whole},
		// The partial line and the line after it together fail to decode.
		{plan: `watch configmaps: garble event 1 x1`, told: "(add c 4, update b 3, vanished a 2)", asked: slices.Concat([]string{"watch from 3"}, anew(3, 5)), kept: whole},
		{plan: `watch configmaps: spoil event 2 x1`, told: "add c 4, (update b 3, update c 4, vanished a 2)", asked: undone, kept: whole},
		{plan: `watch configmaps: retype event 2 x1`, told: "add c 4, (update b 3, update c 4, vanished a 2)", asked: undone, kept: whole},
		{plan: `watch configmaps: send "garbage\n" after 1 event x1`, told: "add c 4, (update b 3, update c 4, vanished a 2)", asked: undone, kept: whole},
		{plan: `watch configmaps: cut after 1 event x1`, told: "add c 4, delete a 5", asked: []string{"watch from 3", "watch from 4"}, kept: whole},
		{plan: `watch configmaps: break after 1 event x1`, told: "add c 4, delete a 5", asked: []string{"watch from 3", "watch from 4"}, kept: whole},
		// client-go treats a watch that ends within a second without an event as a failure.
		{plan: `watch configmaps: cut after 300 bytes x1`, told: "(add c 4, update b 3, vanished a 2)", asked: slices.Concat([]string{"watch from 3"}, anew(3, 5)), kept: whole},
		{plan: `watch configmaps: break after 300 bytes x1`, told: "(add c 4, update b 3, vanished a 2)", asked: slices.Concat([]string{"watch from 3"}, anew(3, 5)), kept: whole},
		{plan: `watch configmaps: 429 plain x1`, told: "add c 4, delete a 5", asked: []string{"watch from 3 -> 429", "watch from 3"}, kept: whole},
		{plan: `watch configmaps: 504 too-large x1`, told: "(add c 4, update b 3, vanished a 2)", asked: slices.Concat([]string{"watch from 3 -> 504"}, anew(3, 5)), kept: whole},
		// Go's HTTP client retries a request if a reused connection is closed.
		{plan: `watch configmaps: reset x1`, told: "add c 4, delete a 5", asked: []string{"watch from 3 -> 0", "watch from 3"}, kept: whole},
	} {
		t.Run(f.plan, func(t *testing.T) {
			sc := started(t)
			st := stage{server: sc.server, configmaps: sc.configmaps, plan: f.plan}
			st.plant()
			sc.inject("freeze watch *")
			sc.create("c")
			sc.delete("a")
			sc.inject("cut watch *; thaw watch *")
			inOrder, anyOrder, _ := strings.Cut(strings.TrimSuffix(f.told, ")"), "(")
			sc.expect(lines(inOrder)...)
			sc.expectAnyOrder(lines(anyOrder)...)
			sc.create("d")
			sc.expect("add d 6")
			sc.asked(f.asked...)
			kept := sc.informer.GetStore().ListKeys()
			slices.Sort(kept)
			equal(t, "the store", kept, f.kept)
		})
	}
}

// lines splits a text at its commas.
func lines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, ",") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// informer starts an informer on a stage and returns it after it has delivered all objects.
func (s stage) informer() scene {
	t := s.server.t
	t.Helper()
	informer := informers.NewSharedInformerFactory(s.configmaps.client, 0).Core().V1().ConfigMaps().Informer()
	told := follow(t, informer)
	told.expectAnyOrder("add a 2", "add b 3", "add c 4", "add d 5")
	// client-go does not treat the end of a watch as a failure if the watch has delivered an event.
	s.create("e")
	told.expect("add e 6")
	s.requests("configmaps")
	return scene{server: s.server, configmaps: s.configmaps, trace: told, informer: informer}
}

func TestFaultsOfBookmarksUnderInformers(t *testing.T) {
	perform(t, []row{
		// Without the bookmark the informer's revision expires. TestInformerResumesFromTheRevisionOfABookmark
		// tests the case with the bookmark.
		{plan: `watch configmaps: drop bookmarks x1`, see: func(s stage) {
			sc := s.informer()
			s.plant()
			s.inject("cut watch configmaps")
			s.awaitRequest("watch from 6")
			// client-go treats a watch that ends within a second without an event as a failure.
			s.create("f")
			sc.expect("add f 7")
			s.other("n")
			// A closed watch delivers everything that was sent before, so only the fault can drop the
			// bookmark.
			s.inject("send bookmarks to watch configmaps; expire history; close watch configmaps")
			sc.expectAnyOrder("update a 2", "update b 3", "update c 4", "update d 5", "update e 6", "update f 7")
			s.create("g")
			sc.expect("add g 9")
			sc.asked(slices.Concat([]string{"watch from 7"}, anew(7, 8))...)
		}},
		// A streaming list that is cut before its end is requested again. The fault does not affect a plain
		// list.
		{plan: `watch configmaps: drop end-bookmark x1`, see: func(s stage) {
			t := s.server.t
			s.plant()
			informer := informers.NewSharedInformerFactory(s.configmaps.client, 0).Core().V1().ConfigMaps().Informer()
			synced := make(chan *trace)
			go func() { synced <- follow(t, informer) }()
			if streaming() {
				select {
				case <-synced:
					t.Fatal("synced")
				case <-time.After(quiet):
				}
				s.inject("cut watch configmaps")
			}
			(<-synced).expectAnyOrder("add a 2", "add b 3", "add c 4", "add d 5")
			s.create("e")
			equal(t, "requests", s.requests("configmaps"), either(
				[]string{"watch all", "watch all", "list from 5 exactly"},
				[]string{"list from 0", "watch from 5"},
			))
		}},
	}, nil)
}

func TestFaultsAtOnceUnderInformers(t *testing.T) {
	perform(t, []row{
		{plan: `expire history; cut watch configmaps`, see: func(s stage) {
			sc := s.informer()
			s.inject("freeze watch configmaps")
			s.create("f")
			s.plant()
			s.inject("thaw watch configmaps")
			sc.expectAnyOrder("add f 7", "update a 2", "update b 3", "update c 4", "update d 5", "update e 6")
			s.create("g")
			sc.expect("add g 8")
			sc.asked(slices.Concat([]string{"watch from 6"}, anew(6, 7))...)
		}},
		{plan: `restart`, see: func(s stage) {
			sc := s.informer()
			s.inject("freeze watch configmaps")
			s.create("f")
			s.plant()
			s.inject("thaw watch configmaps")
			sc.expectAnyOrder("add f 7", "update a 2", "update b 3", "update c 4", "update d 5", "update e 6")
			s.create("g")
			sc.expect("add g 8")
			sc.asked(slices.Concat([]string{"watch from 6"}, anew(6, 7))...)
		}},
		// An informer can't detect that revisions are reused, so it misses the writes at revisions that it
		// has received before.
		{plan: `restart back 3`, see: func(s stage) {
			sc := s.informer()
			s.plant()
			s.awaitRequest("watch from 6")
			s.create("x", "y", "z", "new")
			sc.expect("add new 7")
			kept := sc.informer.GetStore().ListKeys()
			slices.Sort(kept)
			equal(s.server.t, "the store", kept, "[default/a default/b default/c default/d default/e default/new]")
			equal(s.server.t, "stored", s.stored(), "[a b new x y z]")
		}},
		{plan: `refuse connections for 2s; cut watch configmaps`, see: func(s stage) {
			sc := s.informer()
			s.inject("freeze watch configmaps")
			s.create("f")
			refused := time.Now()
			s.plant()
			s.inject("thaw watch configmaps")
			sc.expect("add f 7")
			lasted(s.server.t, refused, 2*time.Second)
			sc.asked("watch from 6")
		}},
		{plan: `accept connections`, see: func(s stage) {
			sc := s.informer()
			s.inject("freeze watch configmaps")
			s.create("f")
			s.inject("refuse connections; cut watch configmaps; thaw watch configmaps")
			select {
			case line := <-sc.trace.lines:
				s.server.t.Fatal(line)
			case <-time.After(quiet):
			}
			s.plant()
			sc.expect("add f 7")
			sc.asked("watch from 6")
		}},
		{plan: `refuse connections`, see: func(s stage) {
			t := s.server.t
			s.plant()
			// A connection that is opened while the port is being closed is reset.
			for until := time.Now().Add(patience); ; {
				fresh, _ := s.wired()
				_, err := fresh.request("GET").DoRaw(t.Context())
				if errors.Is(err, syscall.ECONNREFUSED) {
					break
				}
				if err == nil || time.Now().After(until) {
					t.Fatalf("not refused: %v", err)
				}
			}
			s.inject("accept connections")
			equal(t, "stored", s.stored(), "[a b c d]")
		}},
	}, nil)
}
