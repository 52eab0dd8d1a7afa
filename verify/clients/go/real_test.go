// The real kube-apiserver of the tests without faults. Its kubeconfig is REAL_KUBECONFIG.
//
// Tests use it one after another. Its revisions are large numbers, and its own objects use some of them, so
// tests compare the rank of a revision among those of their writes.

package clients

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// realIsUsed is locked while a test uses the real server.
var realIsUsed sync.Mutex

// real is a real server, with the requests and the revisions of the writes of one test.
type real struct {
	t      *testing.T
	config *rest.Config
	// changes delivers every write of a configmap in the namespace default.
	changes watch.Interface
	// revisions starts with the revision before the test. The first write therefore has rank 2, as on the
	// embedded server.
	revisions []uint64
	lock      sync.Mutex
	requested []*request
}

// connectToReal waits for other tests, empties the namespace default, and connects to the server.
func connectToReal(t *testing.T, kubeconfig string) *real {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	requireLoopback(t, config.Host)
	realIsUsed.Lock()
	t.Cleanup(realIsUsed.Unlock)
	r := &real{t: t, config: config}
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	now := int64(0)
	atOnce, all := metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}
	must(t, client.CoreV1().ConfigMaps("default").DeleteCollection(t.Context(), atOnce, all))
	must(t, client.CoreV1().Pods("default").DeleteCollection(t.Context(), atOnce, all))
	must(t, client.AppsV1().Deployments("default").DeleteCollection(t.Context(), atOnce, all))
	left, err := client.CoreV1().ConfigMaps("default").List(t.Context(), all)
	must(t, err)
	equal(t, "configmaps before the test", names(t, left), "[]")
	r.record(left.ResourceVersion)
	r.changes, err = client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: left.ResourceVersion})
	must(t, err)
	t.Cleanup(r.changes.Stop)
	return r
}

// requireLoopback fails the test if the server may have objects of other users, which the tests delete.
func requireLoopback(t *testing.T, host string) {
	t.Helper()
	address, err := url.Parse(host)
	must(t, err)
	if !net.ParseIP(address.Hostname()).IsLoopback() {
		t.Fatalf("REAL_KUBECONFIG: %s is no loopback address; the tests delete objects, so they need a server of their own", host)
	}
}

func (r *real) connection() *rest.Config {
	config := rest.CopyConfig(r.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return logged{r, next} })
	return config
}

func (r *real) inject(plan string) {
	r.t.Helper()
	r.t.Fatalf("a real server has no faults: %s", plan)
}

func (r *real) clear() {}

func (r *real) record(revision string) {
	r.t.Helper()
	number, err := strconv.ParseUint(revision, 10, 64)
	must(r.t, err)
	r.revisions = append(r.revisions, number)
}

// wrote waits for the event of the write and records its revision, because the response to a deletion has
// none. The server's watch cache then contains the write, so a list at revision 0 returns it.
func (r *real) wrote() {
	r.t.Helper()
	select {
	case event := <-r.changes.ResultChan():
		object, is := event.Object.(*corev1.ConfigMap)
		if !is {
			r.t.Fatalf("not the event of a write: %v", event)
		}
		r.record(object.ResourceVersion)
	case <-time.After(patience):
		r.t.Fatal("the event of a write does not arrive")
	}
}

// rank does not replace revisions before the test.
func (r *real) rank(revision string) string {
	number, err := strconv.ParseUint(revision, 10, 64)
	if err != nil || number < r.revisions[0] {
		return revision
	}
	at, found := slices.BinarySearch(r.revisions, number)
	if found {
		at++
	}
	return strconv.Itoa(at)
}

func (r *real) at(rank int) string {
	return strconv.FormatUint(r.revisions[rank-1], 10)
}

func (r *real) log() []request {
	r.lock.Lock()
	defer r.lock.Unlock()
	var all []request
	for _, pointer := range r.requested {
		all = append(all, *pointer)
	}
	r.requested = nil
	return all
}

// logged adds the lists and watches of a client to the log.
type logged struct {
	of   *real
	next http.RoundTripper
}

// collection matches the path of a list or watch, and captures the resource.
var collection = regexp.MustCompile(`^/apis?(?:/[^/]+){1,2}(?:/namespaces/[^/]+)?/([^/]+)$`)

func (l logged) RoundTrip(sent *http.Request) (*http.Response, error) {
	path := collection.FindStringSubmatch(sent.URL.Path)
	if path == nil || sent.Method != http.MethodGet {
		return l.next.RoundTrip(sent)
	}
	query := sent.URL.Query()
	r := &request{
		Verb:                 "list",
		Resource:             path[1],
		ResourceVersion:      query.Get("resourceVersion"),
		ResourceVersionMatch: query.Get("resourceVersionMatch"),
		Continue:             query.Get("continue") != "",
		SendInitialEvents:    query.Get("sendInitialEvents") == "true",
	}
	if query.Get("watch") == "true" {
		r.Verb = "watch"
	}
	l.of.lock.Lock()
	l.of.requested = append(l.of.requested, r)
	l.of.lock.Unlock()
	response, err := l.next.RoundTrip(sent)
	if err == nil {
		l.of.lock.Lock()
		r.Status = response.StatusCode
		l.of.lock.Unlock()
	}
	return response, err
}
