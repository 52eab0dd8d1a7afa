// Tests of a program with controller-runtime and a custom kind: the controller of the package site.

package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/consistencydetector"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kube-informer/kube-informer/verify/clients/go/site"
)

// replica is one of two processes that run the same controller, of which one is the leader.
type replica struct {
	manager.Manager
	// runs has the name of each reconciled site.
	runs *trace
	stop func()
}

func newSite(name, page string) *site.Site {
	return &site.Site{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       site.Spec{Page: page},
	}
}

// showSite returns what users and the controller change of a site.
func showSite(obj metav1.Object) string {
	s := obj.(*site.Site)
	line := fmt.Sprintf("%s %d: %s x%d", s.Name, s.Generation, s.Spec.Page, *s.Spec.Replicas)
	if ready := meta.FindStatusCondition(s.Status.Conditions, site.Ready); ready != nil {
		line += fmt.Sprintf(", ready %d x%d", ready.ObservedGeneration, s.Status.Replicas)
	}
	if slices.Contains(s.Finalizers, site.Finalizer) {
		line += ", kept"
	}
	if !s.DeletionTimestamp.IsZero() {
		line += ", deleted"
	}
	return line
}

// showPage returns the content and the owner of a config map.
func showPage(obj metav1.Object) string {
	owner := "nothing"
	if controller := metav1.GetControllerOf(obj); controller != nil {
		owner = controller.Kind + " " + controller.Name
	}
	return fmt.Sprintf("%s: %s, of %s", obj.GetName(), obj.(*corev1.ConfigMap).Data["page"], owner)
}

// controllerRuntimeConfig lets controller-runtime choose an encoding for each kind: protobuf for the built-in
// kinds, and JSON for the others.
func (s *server) controllerRuntimeConfig() *rest.Config {
	config := s.config()
	config.ContentConfig = rest.ContentConfig{}
	return config
}

// controllerScheme returns the built-in kinds and sites.
func controllerScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	kinds := runtime.NewScheme()
	must(t, scheme.AddToScheme(kinds))
	must(t, site.AddToScheme(kinds))
	return kinds
}

func startReplica(t *testing.T, config *rest.Config, kinds *runtime.Scheme) *replica {
	t.Helper()
	m, err := manager.New(config, manager.Options{
		Scheme:  kinds,
		Logger:  logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
		Client: client.Options{Cache: &client.CacheOptions{
			EnableReadYourWritesConsistency: new(true),
		}},
		LeaderElection:                true,
		LeaderElectionNamespace:       "default",
		LeaderElectionID:              "sites",
		LeaderElectionReleaseOnCancel: true,
		// The second replica acquires the lease this soon after its release.
		RetryPeriod: new(100 * time.Millisecond),
	})
	must(t, err)
	r := &replica{Manager: m, runs: newTrace(t)}
	reconciler := &site.Reconciler{Client: m.GetClient(), Started: func(name string) { r.runs.lines <- name }}
	must(t, reconciler.AddTo(m))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	stopped := false
	r.stop = func() {
		t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func (r *replica) isLeader(t *testing.T) {
	t.Helper()
	select {
	case <-r.Elected():
	case <-time.After(patience):
		t.Fatal("no replica is elected")
	}
}

// follow returns the trace of the events of a kind in the cache of a replica.
func (r *replica) follow(t *testing.T, kind client.Object, show func(metav1.Object) string) *trace {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	informer, err := r.GetCache().GetInformer(ctx, kind)
	must(t, err)
	told := newTrace(t)
	told.show = show
	_, err = informer.AddEventHandler(told.handler())
	must(t, err)
	return told
}

// The test does not run in parallel, because it disables client-go's consistency detector for the whole process.
// Items of lists of custom objects have a kind, which client-go removes from the events of a watch, so the
// detector would panic.
func TestControllerRuntimeManagesACustomKind(t *testing.T) {
	t.Cleanup(consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(false))
	log.SetLogger(logr.Discard())
	s := start(t)
	config, kinds := s.controllerRuntimeConfig(), controllerScheme(t)
	user, err := client.New(config, client.Options{Scheme: kinds})
	must(t, err)
	definitions := s.definitions()
	defineSites(t.Context(), t, definitions)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sites"}}
	t.Cleanup(func() { must(t, user.Delete(context.Background(), lease)) })
	leader := startReplica(t, config, kinds)
	leader.isLeader(t)
	standby := startReplica(t, config, kinds)
	// The replicas run until this is done, because only they remove the finalizers.
	t.Cleanup(func() { undefineSites(context.Background(), t, definitions) })
	sites, pages := standby.follow(t, &site.Site{}, showSite), standby.follow(t, &corev1.ConfigMap{}, showPage)
	a := newSite("a", "hello")

	// The response has the default, and the reconciler adds the finalizer, the config map and the status.
	must(t, user.Create(t.Context(), a))
	equal(t, "default", fmt.Sprintf("%d %s", *a.Spec.Replicas, a.Spec.Tier), "1 small")
	sites.expect("add a 1: hello x1", "update a 1: hello x1, kept", "update a 1: hello x1, ready 1 x1, kept")
	pages.expect("add a: hello, of Site a")
	// The second run is for the event of the config map.
	leader.runs.expect("a", "a")

	// A label changes no generation, so the predicate drops the event.
	labelled := client.MergeFrom(a.DeepCopy())
	a.Labels = map[string]string{"app": "web"}
	must(t, user.Patch(t.Context(), a, labelled))
	sites.expect("update a 1: hello x1, ready 1 x1, kept")
	b := newSite("b", "bye")
	must(t, user.Create(t.Context(), b))
	sites.expect("add b 1: bye x1", "update b 1: bye x1, kept", "update b 1: bye x1, ready 1 x1, kept")
	pages.expect("add b: bye, of Site b")
	leader.runs.expect("b", "b")

	// Events of a config map lead to its owner.
	page := &corev1.ConfigMap{}
	must(t, user.Get(t.Context(), client.ObjectKeyFromObject(a), page))
	page.Data["page"] = "edited"
	must(t, user.Update(t.Context(), page))
	pages.expect("update a: edited, of Site a", "update a: hello, of Site a")
	must(t, user.Delete(t.Context(), page))
	pages.expect("delete a: hello, of Site a", "add a: hello, of Site a")

	scaleSite(t, user, a, sites)
	refuseSites(t, user, a)
	readOwnWrites(t, standby, sites, pages)

	takeOver(t, user, lease, leader, standby)
	must(t, user.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	a.Spec.Page = "again"
	must(t, user.Update(t.Context(), a))
	sites.expect("update a 3: again x2, ready 2 x2, kept", "update a 3: again x2, ready 3 x2, kept")
	pages.expect("update a: again, of Site a")

	// The finalizer keeps the site until the reconciler has deleted the config map. A patch that removes the
	// last finalizer deletes a site without storing it, so its last state has the finalizer.
	must(t, user.Delete(t.Context(), a))
	sites.expect("update a 4: again x2, ready 3 x2, kept, deleted", "delete a 4: again x2, ready 3 x2, kept, deleted")
	pages.expect("delete a: again, of Site a")

	// The deletion of the definition deletes its sites, in the same way.
	undefineSites(t.Context(), t, definitions)
	sites.expect("update b 2: bye x1, ready 1 x1, kept, deleted", "delete b 2: bye x1, ready 1 x1, kept, deleted")
	pages.expect("delete b: bye, of Site b")
	err = user.Create(t.Context(), newSite("c", "unknown"))
	said(t, refusal(err), "404 NotFound: the server could not find the requested resource (post sites.example.org)")

	// The caches watch the kind again when it is defined again.
	defineSites(t.Context(), t, definitions)
	must(t, user.Create(t.Context(), newSite("d", "new")))
	pages.expect("add d: new, of Site d")
	var last string
	for last != "update d 1: new x1, ready 1 x1, kept" {
		last = sites.next()
	}
	must(t, user.Delete(t.Context(), newSite("d", "")))
	sites.expect("update d 2: new x1, ready 1 x1, kept, deleted", "delete d 2: new x1, ready 1 x1, kept, deleted")
	pages.expect("delete d: new, of Site d")
}

// scaleSite scales a from 1 to 2, and is refused to scale it to 4.
func scaleSite(t *testing.T, user client.Client, a *site.Site, sites *trace) {
	t.Helper()
	scale := &autoscalingv1.Scale{}
	must(t, user.SubResource("scale").Get(t.Context(), a, scale))
	equal(t, "scale", fmt.Sprint(scale.Spec.Replicas, scale.Status), "1 {1 site=a}")
	scale.Spec.Replicas = 2
	must(t, user.SubResource("scale").Update(t.Context(), a, client.WithSubResourceBody(scale)))
	sites.expect("update a 2: hello x2, ready 1 x1, kept", "update a 2: hello x2, ready 2 x2, kept")
	must(t, user.SubResource("scale").Get(t.Context(), a, scale))
	equal(t, "scale", fmt.Sprint(scale.Spec.Replicas, scale.Status), "2 {2 site=a}")
	scale.Spec.Replicas = 4
	err := user.SubResource("scale").Update(t.Context(), a, client.WithSubResourceBody(scale))
	said(t, refusal(err), `422 Invalid: Site.example.org "a" is invalid: spec: Invalid value: a small site has at most 3 replicas`)
}

// refuseSites sends what the server refuses: invalid sites, a site that exists, and an old revision.
func refuseSites(t *testing.T, user client.Client, a *site.Site) {
	t.Helper()
	refused := func(err error, wanted string) {
		t.Helper()
		said(t, refusal(err), wanted)
	}
	many := newSite("many", "hello")
	many.Spec.Replicas = new(int32(4))
	refused(user.Create(t.Context(), many), `422 Invalid: Site.example.org "many" is invalid: spec: Invalid value: a small site has at most 3 replicas`)
	wrong := newSite("wrong", "hello")
	wrong.Spec.Tier = "medium"
	refused(user.Create(t.Context(), wrong), `422 Invalid: Site.example.org "wrong" is invalid: [spec.tier: Unsupported value: "medium": `+
		`supported values: "small", "large", <nil>: Invalid value: null: some validation rules were not checked `+
		`because the object was invalid; correct the existing errors to complete validation]`)
	refused(user.Create(t.Context(), newSite("a", "other")), `409 AlreadyExists: sites.example.org "a" already exists`)

	old := a.DeepCopy()
	old.Spec.Page = "old"
	refused(user.Update(t.Context(), old), `409 Conflict: Operation cannot be fulfilled on sites.example.org "a": `+
		`the object has been modified; please apply your changes to the latest version and try again`)
	refused(user.Status().Update(t.Context(), old), `409 Conflict: Operation cannot be fulfilled on sites.example.org "a": `+
		`the object has been modified; please apply your changes to the latest version and try again`)
	refused(user.Delete(t.Context(), newSite("missing", "")), `404 NotFound: sites.example.org "missing" not found`)
}

// readOwnWrites writes with the client of a manager. Its reads are from the cache, and wait for the writes.
func readOwnWrites(t *testing.T, r *replica, sites, pages *trace) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own, key := r.GetClient(), client.ObjectKey{Namespace: "default", Name: "own"}
	large := newSite("own", "large")
	large.Spec.Tier = "large"
	must(t, own.Create(ctx, large))
	read := &site.Site{}
	must(t, own.Get(ctx, key, read))
	equal(t, "page", read.Spec.Page, "large")
	sites.expect("add own 1: large x1", "update own 1: large x1, kept", "update own 1: large x1, ready 1 x1, kept")
	pages.expect("add own: large, of Site own")

	// The index of the cache and the selectable field of the server have the same name.
	for _, reader := range []client.Reader{own, r.GetAPIReader()} {
		list := &site.SiteList{}
		must(t, reader.List(ctx, list, client.InNamespace("default"), client.MatchingFields{site.Tier: "large"}))
		equal(t, "large sites", names(t, list), "[own]")
	}

	must(t, own.Delete(ctx, large))
	err := own.Get(ctx, key, read)
	if err == nil {
		equal(t, "is deleted", read.DeletionTimestamp.IsZero(), false)
	} else {
		said(t, refusal(err), `404 NotFound: Site.example.org "own" not found`)
	}
	sites.expect("update own 2: large x1, ready 1 x1, kept, deleted", "delete own 2: large x1, ready 1 x1, kept, deleted")
	pages.expect("delete own: large, of Site own")
}

// takeOver stops the leader, and waits until the other replica has its lease and reconciles.
func takeOver(t *testing.T, user client.Client, lease *coordinationv1.Lease, leader, standby *replica) {
	t.Helper()
	must(t, user.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	before := *lease.Spec.HolderIdentity
	equal(t, "runs of the standby", len(standby.runs.lines), 0)
	leader.stop()
	standby.isLeader(t)
	must(t, user.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	equal(t, "another holder", *lease.Spec.HolderIdentity != before, true)
	equal(t, "transitions", *lease.Spec.LeaseTransitions, 1)
}
