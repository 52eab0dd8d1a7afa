// Tests of every fault of the server's fault plans with client-go. A row contains a plan and its expected
// effect.
//
// The server's own tests read the plans of these rows, and fail if a fault of the grammar has no row.
// With FAULTS_OFF no plan is added, and every row must fail; verify/clients/run checks this.

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

// quiet is the time for which a delayed result must not arrive; without the fault it arrives immediately.
const quiet = 300 * time.Millisecond

// row is a fault plan, and a script that passes only if the fault has its documented effect.
type row struct {
	plan string
	see  func(s stage)
}

// stage is a server with the configmaps a, b, c and d, at revisions 2 to 5.
type stage struct {
	*server
	configmaps
	plan string
}

// show runs each row on its own stage, with the fault active from the start.
func show(t *testing.T, rows []row) {
	t.Helper()
	perform(t, rows, func(s stage) { s.plant() })
}

// perform runs each row on its own stage. The script adds the fault.
func perform(t *testing.T, rows []row, before func(s stage)) {
	t.Helper()
	t.Parallel()
	for _, r := range rows {
		t.Run(r.plan, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			st := stage{server: s, configmaps: s.writer(s.client()), plan: r.plan}
			st.create("a", "b", "c", "d")
			if before != nil {
				before(st)
			}
			r.see(st)
		})
	}
}

// plant adds the row's fault plan.
func (s stage) plant() {
	s.server.t.Helper()
	if !faultsOff {
		s.inject(s.plan)
	}
}

// request returns a request for one configmap or for all, without retries.
func (s stage) request(verb string) *rest.Request {
	return s.configmaps.client.CoreV1().RESTClient().Verb(verb).Namespace("default").Resource("configmaps").MaxRetries(0)
}

// watching is a watch of client-go.
type watching struct {
	t      *testing.T
	events watch.Interface
}

// deadline is the timeout in seconds of watches that are read to their end. Events that exist at the start of
// a watch are delivered before its timeout.
var deadline = int64(1)

// fromTheStart returns the options of a watch that delivers all objects of a stage.
func fromTheStart() metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: &deadline}
}

// streamed returns the options of a streaming list.
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

// next returns the next event as a line, `end` if the watch has ended, or `nothing` after a timeout.
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

// silent fails if the watch delivers an event or ends within a time.
func (w watching) silent(period time.Duration) {
	w.t.Helper()
	select {
	case event, open := <-w.events.ResultChan():
		w.t.Fatalf("not silent: %v, open: %t", event, open)
	case <-time.After(period):
	}
}

// said compares a line with an expected one, in which … stands for any text.
func said(t *testing.T, got, want string) {
	t.Helper()
	start, end, open := strings.Cut(want, "…")
	if open && strings.HasPrefix(got, start) && strings.HasSuffix(got, end) || got == want {
		return
	}
	t.Fatalf("\n got %s\nwant %s", got, want)
}

// refusal formats an error of client-go as a line.
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

// refused requests a watch and returns its error as a line.
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

// stored returns the names of the configmaps on the server.
func (s stage) stored() string {
	s.server.t.Helper()
	list, err := s.configmaps.client.CoreV1().ConfigMaps("").List(s.server.t.Context(), metav1.ListOptions{})
	must(s.server.t, err)
	return names(s.server.t, list)
}

// lasted fails if less than 90 % of a time has passed. The tolerance is needed because the clocks of two
// processes are compared.
func lasted(t *testing.T, since time.Time, period time.Duration) {
	t.Helper()
	if took := time.Since(since); took < period*9/10 {
		t.Fatalf("took %s, want at least %s", took, period)
	}
}
