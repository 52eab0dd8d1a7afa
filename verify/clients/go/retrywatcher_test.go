// Tests of client-go's RetryWatcher: a watch that resumes after failures, and ends when only a list can
// recover.

package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// retried is a RetryWatcher of configmaps that starts at the revision of a list.
type retried struct {
	*server
	configmaps
	watch *watchtools.RetryWatcher
}

func retryScene(t *testing.T, timeoutSeconds int64) retried {
	t.Helper()
	t.Parallel()
	s := start(t)
	client := s.client()
	write := s.writer(client)
	write.create("a")
	list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	watches := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.TimeoutSeconds = &timeoutSeconds
		return client.CoreV1().ConfigMaps("").Watch(ctx, o)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, watches)
	must(t, err)
	t.Cleanup(func() { <-watcher.Done() })
	re := retried{server: s, configmaps: write, watch: watcher}
	write.create("b")
	re.expect("ADDED b 3")
	return re
}

// expect compares the next events.
func (re retried) expect(lines ...string) {
	t := re.server.t
	t.Helper()
	for _, line := range lines {
		select {
		case event := <-re.watch.ResultChan():
			equal(t, "event", eventLine(event), line)
		case <-time.After(patience):
			t.Fatal("no event arrives")
		}
	}
}

func eventLine(event watch.Event) string {
	switch object := event.Object.(type) {
	case *corev1.ConfigMap:
		return fmt.Sprintf("%s %s %s", event.Type, object.Name, object.ResourceVersion)
	case *metav1.Status:
		return fmt.Sprintf("%s %d %s: %s", event.Type, object.Code, object.Reason, object.Message)
	default:
		return fmt.Sprintf("%s %T", event.Type, object)
	}
}

func TestRetryWatcherResumesWithoutLossOrRepetition(t *testing.T) {
	for _, end := range []string{"cut watch *", "break watch *"} {
		t.Run(end, func(t *testing.T) {
			re := retryScene(t, 600)
			re.inject("freeze watch *")
			re.create("c")
			re.inject(end + "; thaw watch *")
			re.delete("a")
			re.label("b", "web")
			re.expect("ADDED c 4", "DELETED a 5", "MODIFIED b 6")
			requests := re.requests("configmaps")
			equal(t, "requests", requests, []string{"list", "watch from 2", "watch from 3"})
		})
	}
}

func TestRetryWatcherResumesFromTheRevisionOfABookmark(t *testing.T) {
	// A timeout loses nothing: everything that was sent before it is delivered.
	re := retryScene(t, 2)
	re.other("n")
	re.inject("send bookmarks to watch *; expire history")
	re.awaitRequest("watch from 4")
	re.create("c")
	re.expect("ADDED c 5")
}

func TestRetryWatcherEndsWhenItsRevisionIsTooOld(t *testing.T) {
	re := retryScene(t, 600)
	re.inject("freeze watch *")
	re.create("c")
	re.inject("expire history; cut watch *; thaw watch *")
	re.expect("ERROR 410 Expired: too old resource version: 3 (4)")
	if event, open := <-re.watch.ResultChan(); open {
		t.Fatal(eventLine(event))
	}
}

func TestRetryWatcherRetriesARejectedWatch(t *testing.T) {
	for _, code := range []int{429, 500, 503} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			re := retryScene(t, 600)
			re.inject(fmt.Sprintf("watch configmaps: %d x1; cut watch *", code))
			re.create("c")
			re.expect("ADDED c 4")
			refused := fmt.Sprintf("watch from 3 -> %d", code)
			equal(t, "requests", re.requests("configmaps"), []string{"list", "watch from 2", refused, "watch from 3"})
		})
	}
}
