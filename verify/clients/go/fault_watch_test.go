// Tests of faults that affect the events of a watch, as client-go decodes them.

package clients

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchTells expects all events of a watch from the start, to its timeout or an earlier end.
func watchTells(lines ...string) func(s stage) {
	return func(s stage) {
		s.server.t.Helper()
		s.open(fromTheStart()).expect(append(lines, "end")...)
	}
}

// listTells expects the events after a streaming list, during which the server sends a bookmark.
func listTells(lines ...string) func(s stage) {
	return func(s stage) {
		s.server.t.Helper()
		w := s.open(streamed())
		w.expect("ADDED a 2", "ADDED b 3", "ADDED c 4", "ADDED d 5")
		s.inject("send bookmarks to watch configmaps")
		s.create("e")
		w.expect(lines...)
	}
}

// undecodable returns the event with which client-go replaces an event that fails to decode. The watch then
// ends.
func undecodable(why string) string {
	return `ERROR 500 InternalError: an error on the server ("unable to decode an event from the watch stream: ` + why + `") has prevented the request from succeeding`
}

func TestFaultsOfEvents(t *testing.T) {
	show(t, []row{
		{plan: `watch configmaps: drop events`, see: watchTells()},
		{plan: `watch configmaps: drop event 2`, see: watchTells("ADDED a 2", "ADDED c 4", "ADDED d 5")},
		{plan: `watch configmaps: drop every 2 events`, see: watchTells("ADDED a 2", "ADDED c 4")},
		{plan: `seed 1; watch configmaps: drop 50% of events`, see: watchTells("ADDED a 2", "ADDED d 5")},
		{plan: `watch configmaps: drop bookmarks`, see: listTells("ADDED e 6")},
		{plan: `watch configmaps: drop end-bookmark`, see: listTells("BOOKMARK  5", "ADDED e 6")},
		{plan: `watch configmaps: duplicate event 2`, see: watchTells("ADDED a 2", "ADDED b 3", "ADDED b 3", "ADDED c 4", "ADDED d 5")},
		{plan: `watch configmaps: swap event 2`, see: watchTells("ADDED a 2", "ADDED c 4", "ADDED b 3", "ADDED d 5")},
		{plan: `watch configmaps: garble event 2`, see: watchTells("ADDED a 2", undecodable(`invalid character '\\n' in string literal`))},
		{plan: `watch configmaps: spoil event 2`, see: watchTells("ADDED a 2", undecodable(`unable to decode watch event: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type map[string]string`))},
		{plan: `watch configmaps: retype event 2`, see: watchTells("ADDED a 2", undecodable(`got invalid watch event type: MOVED`))},
		{plan: `watch configmaps: send "text\n" after 2 events`, see: watchTells("ADDED a 2", "ADDED b 3", undecodable(`invalid character 'e' in literal true (expecting 'r')`))},
	})
}

func TestFaultsThatEndAWatch(t *testing.T) {
	show(t, []row{
		{plan: `watch configmaps: cut after 2 events`, see: watchTells("ADDED a 2", "ADDED b 3")},
		// client-go ignores an incomplete event and reports no error.
		{plan: `watch configmaps: cut after 300 bytes`, see: watchTells()},
		{plan: `watch configmaps: freeze after 2 events`, see: func(s stage) {
			w := s.open(fromTheStart())
			w.expect("ADDED a 2", "ADDED b 3")
			// The timeout does not end a frozen watch.
			w.silent(time.Duration(deadline)*time.Second + quiet)
			s.inject("thaw watch configmaps")
			w.expect("ADDED c 4", "ADDED d 5", "end")
		}},
	})
}

func TestFaultsOnOpenWatches(t *testing.T) {
	// opened returns a watch that has delivered all objects.
	opened := func(s stage) watching {
		s.server.t.Helper()
		w := s.open(metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true})
		w.expect("ADDED a 2", "ADDED b 3", "ADDED c 4", "ADDED d 5")
		return w
	}
	perform(t, []row{
		{plan: `cut watch configmaps`, see: func(s stage) {
			w := opened(s)
			s.inject("freeze watch configmaps")
			s.create("e")
			s.plant()
			s.inject("thaw watch configmaps")
			w.expect("end")
		}},
		{plan: `close watch configmaps`, see: func(s stage) {
			w := opened(s)
			s.inject("freeze watch configmaps")
			s.create("e")
			s.plant()
			s.create("f")
			s.inject("thaw watch configmaps")
			w.expect("ADDED e 6", "end")
		}},
		{plan: `freeze watch configmaps`, see: func(s stage) {
			w := opened(s)
			s.plant()
			s.create("e")
			later := s.open(metav1.ListOptions{ResourceVersion: "5", TimeoutSeconds: &deadline})
			w.silent(quiet)
			later.silent(time.Duration(deadline)*time.Second + quiet)
			s.inject("thaw watch configmaps")
			w.expect("ADDED e 6")
			later.expect("ADDED e 6", "end")
		}},
		{plan: `thaw watch configmaps`, see: func(s stage) {
			w := opened(s)
			s.inject("freeze watch *; freeze watch configmaps")
			s.inject("freeze watch configmaps in other")
			s.create("e")
			s.inject("thaw watch nodes")
			w.silent(quiet)
			s.plant()
			w.expect("ADDED e 6")
		}},
		{plan: `send "{\"type\":\"DELETED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"77\"}}}\n" to watch configmaps`, see: func(s stage) {
			w := opened(s)
			s.plant()
			w.expect("DELETED x 77")
		}},
		{plan: `send bookmarks to watch configmaps`, see: func(s stage) {
			w := opened(s)
			plain := s.open(metav1.ListOptions{ResourceVersion: "5"})
			s.other("n")
			s.plant()
			w.expect("BOOKMARK  6")
			s.create("e")
			plain.expect("ADDED e 7")
		}},
		{plan: `expire history`, see: func(s stage) {
			w := opened(s)
			s.plant()
			s.open(metav1.ListOptions{ResourceVersion: "4"}).expect("ERROR 410 Expired: too old resource version: 4 (5)", "end")
			s.create("e")
			w.expect("ADDED e 6")
		}},
		{plan: `restart`, see: func(s stage) {
			w := opened(s)
			s.plant()
			w.expect("end")
			s.open(metav1.ListOptions{ResourceVersion: "4"}).expect("ERROR 410 Expired: too old resource version: 4 (5)", "end")
			equal(s.server.t, "stored", s.stored(), "[a b c d]")
		}},
		{plan: `restart at 3`, see: func(s stage) {
			w := opened(s)
			s.plant()
			w.expect("end")
			equal(s.server.t, "stored", s.stored(), "[a b]")
			s.create("e")
			s.open(metav1.ListOptions{}).expect("ADDED a 2", "ADDED b 3", "ADDED e 4")
		}},
		{plan: `restart back 1`, see: func(s stage) {
			w := opened(s)
			s.plant()
			w.expect("end")
			equal(s.server.t, "stored", s.stored(), "[a b c]")
			s.create("e")
			s.open(metav1.ListOptions{}).expect("ADDED a 2", "ADDED b 3", "ADDED c 4", "ADDED e 5")
		}},
	}, nil)
}
