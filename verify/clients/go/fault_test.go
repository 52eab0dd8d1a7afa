// Every fault that a plan can name, shown to client-go: a row is a plan and what client-go sees of it.
//
// The server's own tests read the plans of these rows, and fail if the grammar knows a fault that none of them has.
// With FAULTS_OFF the plans are left out, and then every row must fail; verify/clients/run sees to that.

package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

var faultsOff = os.Getenv("FAULTS_OFF") != ""

func init() {
	if faultsOff {
		patience = 3 * time.Second
	}
}

// quiet is how long something must not come that without a fault comes at once.
const quiet = 300 * time.Millisecond

// row is a fault, and a script that ends well only where the fault does what its documentation says.
type row struct {
	plan string
	see  func(s stage)
}

// stage is a server with the configmaps a, b, c and d, at the revisions 2 to 5.
type stage struct {
	*server
	configmaps
	plan string
}

// show gives each row a stage of its own, with the fault in force.
func show(t *testing.T, rows []row) {
	t.Helper()
	perform(t, rows, func(s stage) { s.plant() })
}

// perform gives each row a stage of its own; the script says when the fault comes.
func perform(t *testing.T, rows []row, before func(s stage)) {
	t.Helper()
	t.Parallel()
	for _, r := range rows {
		t.Run(r.plan, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			st := stage{server: s, configmaps: configmaps{t, s.client()}, plan: r.plan}
			st.create("a", "b", "c", "d")
			if before != nil {
				before(st)
			}
			r.see(st)
		})
	}
}

// plant puts the row's plan in force.
func (s stage) plant() {
	s.server.t.Helper()
	if !faultsOff {
		s.inject(s.plan)
	}
}

// request is one for a configmap or for all of them, tried once.
func (s stage) request(verb string) *rest.Request {
	return s.configmaps.client.CoreV1().RESTClient().Verb(verb).Namespace("default").Resource("configmaps").MaxRetries(0)
}

// watching is client-go's watch.
type watching struct {
	t      *testing.T
	events watch.Interface
}

// deadline is that of watches whose whole story is told, in seconds; it loses nothing that was there at their start.
var deadline = int64(1)

// fromTheStart are the options of a watch of all that a stage has.
func fromTheStart() metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: &deadline}
}

// streamed are the options of a streamed list.
func streamed() metav1.ListOptions {
	all := true
	return metav1.ListOptions{
		SendInitialEvents:    &all,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
	}
}

func (s stage) open(options metav1.ListOptions) watching {
	t := s.server.t
	t.Helper()
	events, err := s.configmaps.client.CoreV1().ConfigMaps("").Watch(t.Context(), options)
	must(t, err)
	t.Cleanup(events.Stop)
	return watching{t, events}
}

// next is the next event as a line, or `end`.
func (w watching) next() string {
	w.t.Helper()
	select {
	case event, open := <-w.events.ResultChan():
		if !open {
			return "end"
		}
		return eventLine(event)
	case <-time.After(patience):
		return "nothing"
	}
}

// expect compares the next lines.
func (w watching) expect(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		said(w.t, w.next(), line)
	}
}

// silent makes sure that nothing comes for a time.
func (w watching) silent(period time.Duration) {
	w.t.Helper()
	select {
	case event, open := <-w.events.ResultChan():
		w.t.Fatalf("not silent: %v, open: %t", event, open)
	case <-time.After(period):
	}
}

// said compares a line with one that may have a … for what is not compared.
func said(t *testing.T, got, want string) {
	t.Helper()
	start, end, open := strings.Cut(want, "…")
	if open && strings.HasPrefix(got, start) && strings.HasSuffix(got, end) || got == want {
		return
	}
	t.Fatalf("\n got %s\nwant %s", got, want)
}

// refusal is what client-go makes of a refusal, as a line.
func refusal(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "no error"
	case !errors.As(err, &status):
		return err.Error()
	}
	s := status.Status()
	line := fmt.Sprintf("%d %s: %s", s.Code, s.Reason, s.Message)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		line += fmt.Sprintf(" (retry in %d s)", seconds)
	}
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		line += " (too large)"
	}
	return line
}

// refused tries a watch.
func (s stage) refused(options metav1.ListOptions) string {
	s.server.t.Helper()
	ctx, cancel := context.WithTimeout(s.server.t.Context(), patience)
	defer cancel()
	stream, err := s.request("GET").VersionedParams(asWatch(options), scheme.ParameterCodec).Stream(ctx)
	if err == nil {
		_ = stream.Close()
	}
	return refusal(err)
}

func asWatch(options metav1.ListOptions) *metav1.ListOptions {
	options.Watch = true
	return &options
}

// stored are the names on the server.
func (s stage) stored() string {
	s.server.t.Helper()
	list, err := s.configmaps.client.CoreV1().ConfigMaps("").List(s.server.t.Context(), metav1.ListOptions{})
	must(s.server.t, err)
	return names(s.server.t, list)
}

// lasted makes sure that something took so long; less than it, as clocks of two processes are compared.
func lasted(t *testing.T, since time.Time, period time.Duration) {
	t.Helper()
	if took := time.Since(since); took < period*9/10 {
		t.Fatalf("came after %s, not %s", took, period)
	}
}
