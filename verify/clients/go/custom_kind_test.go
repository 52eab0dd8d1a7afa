// Tests of a program with client-go that defines a custom kind, uses it, and removes it.

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kube-informer/kube-informer/verify/clients/go/site"
)

// sitesClient is a typed client of sites.
type sitesClient struct {
	t *testing.T
	*rest.RESTClient
	parameters runtime.ParameterCodec
}

func (s *server) sites() sitesClient {
	s.t.Helper()
	kinds := runtime.NewScheme()
	must(s.t, site.AddToScheme(kinds))
	config := s.config()
	// Custom objects are never protobuf, and a client that accepts both gets JSON.
	config.ContentType = "application/json"
	config.GroupVersion, config.APIPath = &site.Version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(kinds).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	must(s.t, err)
	return sitesClient{s.t, client, runtime.NewParameterCodec(kinds)}
}

func (c sitesClient) list(options metav1.ListOptions) (*site.SiteList, error) {
	list := &site.SiteList{}
	err := c.Get().Namespace("default").Resource("sites").VersionedParams(&options, c.parameters).Do(c.t.Context()).Into(list)
	return list, err
}

func (c sitesClient) create(sent *site.Site) *site.Site {
	c.t.Helper()
	sent.SetGroupVersionKind(site.Version.WithKind("Site"))
	stored := &site.Site{}
	must(c.t, c.Post().Namespace("default").Resource("sites").Body(sent).Do(c.t.Context()).Into(stored))
	return stored
}

// update changes a site with a merge patch.
func (c sitesClient) update(name, patch string) error {
	return c.Patch(types.MergePatchType).Namespace("default").Resource("sites").Name(name).Body([]byte(patch)).Do(c.t.Context()).Error()
}

// printed returns the headers and the cells that kubectl prints, without the age.
func (c sitesClient) printed() [][]any {
	c.t.Helper()
	body, err := c.Get().Namespace("default").Resource("sites").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(c.t.Context()).Raw()
	must(c.t, err)
	var table metav1.Table
	must(c.t, json.Unmarshal(body, &table))
	headers := []any{}
	for _, column := range table.ColumnDefinitions {
		headers = append(headers, column.Name)
	}
	lines := [][]any{headers}
	for _, row := range table.Rows {
		lines = append(lines, row.Cells)
	}
	return lines
}

// showDynamic returns the fields of a site that users change.
func showDynamic(obj metav1.Object) string {
	spec := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
	return fmt.Sprintf("%s: %v %v x%v", obj.GetName(), spec["page"], spec["tier"], spec["replicas"])
}

// awaitDefinition waits until the condition is met by the definition, of which nil is the deletion.
func awaitDefinition(ctx context.Context, t *testing.T, client clientset.Interface, met func(*apiextensionsv1.CustomResourceDefinition) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	only := fields.OneTermEqualSelector("metadata.name", site.Definition().Name).String()
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return definitions.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return definitions.Watch(ctx, o)
		},
	}
	absent := func(store cache.Store) (bool, error) { return len(store.List()) == 0 && met(nil), nil }
	_, err := watchtools.UntilWithSync(ctx, lists, &apiextensionsv1.CustomResourceDefinition{}, absent,
		func(event watch.Event) (bool, error) {
			if event.Type == watch.Deleted {
				return met(nil), nil
			}
			return met(event.Object.(*apiextensionsv1.CustomResourceDefinition)), nil
		})
	must(t, err)
}

func isEstablished(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d != nil && slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

func (s *server) definitions() clientset.Interface {
	s.t.Helper()
	client, err := clientset.NewForConfig(s.config())
	must(s.t, err)
	return client
}

// defineSites creates the definition of sites, and waits until they are served and in discovery.
func defineSites(ctx context.Context, t *testing.T, client clientset.Interface) {
	t.Helper()
	_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, site.Definition(), metav1.CreateOptions{})
	must(t, err)
	awaitDefinition(ctx, t, client, isEstablished)
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		_, err = client.Discovery().ServerResourcesForGroupVersion(site.Version.String())
		if !apierrors.IsNotFound(err) {
			must(t, err)
			return
		}
	}
	t.Fatal("discovery does not have the kind")
}

// undefineSites deletes the definition if it exists, and waits until it and the sites no longer exist.
func undefineSites(ctx context.Context, t *testing.T, client clientset.Interface) {
	t.Helper()
	err := client.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, site.Definition().Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	must(t, err)
	awaitDefinition(ctx, t, client, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d == nil })
}

func TestCustomKindIsDefinedAndUsedAndRemoved(t *testing.T) {
	t.Parallel()
	s := start(t)
	definitions := s.definitions()
	discovered, err := discovery.NewDiscoveryClientForConfig(s.config())
	must(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	kind := schema.GroupKind{Group: site.Version.Group, Kind: "Site"}
	_, err = mapper.RESTMapping(kind)
	equal(t, "unknown kind", meta.IsNoMatchError(err), true)

	defineSites(t.Context(), t, definitions)
	t.Cleanup(func() { undefineSites(context.Background(), t, definitions) })
	findSites(t, discovered, mapper, kind)

	client, err := dynamic.NewForConfig(s.config())
	must(t, err)
	in := client.Resource(site.Resource).Namespace("default")
	all := newTrace(t)
	all.show = showDynamic
	all.run(dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(site.Resource).Informer())
	large := newTrace(t)
	large.show = showDynamic
	large.run(dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "default", func(o *metav1.ListOptions) {
		o.FieldSelector = site.Tier + "=large"
	}).ForResource(site.Resource).Informer())

	sites := s.sites()
	a := sites.create(newSite("a", "hello"))
	equal(t, "default", fmt.Sprintf("%d %s", *a.Spec.Replicas, a.Spec.Tier), "1 small")
	all.expect("add a: hello small x1")
	b := newSite("b", "bye")
	b.Spec.Tier = "large"
	sites.create(b)
	all.expect("add b: bye large x1")
	large.expect("add b: bye large x1")

	// The selectable field.
	list, err := sites.list(metav1.ListOptions{FieldSelector: site.Tier + "!=large"})
	must(t, err)
	equal(t, "small sites", names(t, list), "[a]")
	_, err = sites.list(metav1.ListOptions{FieldSelector: "spec.page=hello"})
	said(t, refusal(err), "400 BadRequest: field label not supported: spec.page")
	must(t, sites.update("a", `{"spec":{"tier":"large"}}`))
	all.expect("update a: hello large x1")
	large.expect("add a: hello large x1")
	must(t, sites.update("a", `{"spec":{"tier":"small"}}`))
	all.expect("update a: hello small x1")
	// The object of this event is the last one that matched.
	large.expect("delete a: hello large x1")

	// The subresources.
	must(t, sites.Get().Namespace("default").Resource("sites").Name("a").Do(t.Context()).Into(a))
	a.Spec.Page = "ignored"
	a.Status = site.Status{Replicas: 1, Selector: "site=a", Conditions: []metav1.Condition{{
		Type: site.Ready, Status: metav1.ConditionTrue, Reason: "Written", LastTransitionTime: metav1.Now(),
	}}}
	must(t, sites.Put().Namespace("default").Resource("sites").Name("a").SubResource("status").Body(a).Do(t.Context()).Into(a))
	all.expect("update a: hello small x1")
	scaleWithClientGo(t, s, mapper)
	all.expect("update a: hello small x3")
	said(t, refusal(sites.update("a", `{"spec":{"replicas":4}}`)),
		`422 Invalid: Site.example.org "a" is invalid: spec: Invalid value: a small site has at most 3 replicas`)
	equal(t, "table", sites.printed(), "[[Name Tier Ready] [a small True] [b large <nil>]]")

	// The deletion of the definition deletes its objects and ends their watches.
	now, err := in.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	watched, err := in.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now.GetResourceVersion()})
	must(t, err)
	defer watched.Stop()
	undefineSites(t.Context(), t, definitions)
	all.expectAnyOrder("delete a: hello small x3", "delete b: bye large x1")
	large.expect("delete b: bye large x1")
	equal(t, "events until the end of the watch", untilTheEnd(t, watched), "[DELETED a DELETED b]")
	_, err = in.Get(t.Context(), "a", metav1.GetOptions{})
	said(t, refusal(err), "404 NotFound: the server could not find the requested resource")
	mapper.Reset()
	_, err = mapper.RESTMapping(kind)
	equal(t, "unknown kind", meta.IsNoMatchError(err), true)
}

// findSites requires that discovery has the kind, its subresources and its short name.
func findSites(t *testing.T, discovered discovery.DiscoveryInterface, mapper *restmapper.DeferredDiscoveryRESTMapper, kind schema.GroupKind) {
	t.Helper()
	mapper.Reset()
	mapping, err := mapper.RESTMapping(kind)
	must(t, err)
	equal(t, "resource", mapping.Resource, site.Resource)
	equal(t, "scope", mapping.Scope.Name(), meta.RESTScopeNameNamespace)
	short, err := restmapper.NewShortcutExpander(mapper, discovered, nil).ResourceFor(schema.GroupVersionResource{Resource: "si"})
	must(t, err)
	equal(t, "short name", short, site.Resource)
	found, err := discovered.ServerResourcesForGroupVersion(site.Version.String())
	must(t, err)
	lines := []string{}
	for _, r := range found.APIResources {
		lines = append(lines, fmt.Sprintf("%s %s %s", r.Name, r.Kind, r.Verbs))
	}
	slices.Sort(lines)
	equal(t, "resources", lines, []string{
		"sites Site [delete deletecollection get list patch create update watch]",
		"sites/scale Scale [get patch update]",
		"sites/status Site [get patch update]",
	})
}

// scaleWithClientGo scales a from 1 to 3.
func scaleWithClientGo(t *testing.T, s *server, mapper *restmapper.DeferredDiscoveryRESTMapper) {
	t.Helper()
	config := s.config()
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovered))
	must(t, err)
	group := site.Resource.GroupResource()
	stored, err := scales.Scales("default").Get(t.Context(), group, "a", metav1.GetOptions{})
	must(t, err)
	equal(t, "scale", fmt.Sprint(stored.Spec, stored.Status), "{1} {1 site=a}")
	stored.Spec.Replicas = 3
	stored, err = scales.Scales("default").Update(t.Context(), group, stored, metav1.UpdateOptions{})
	must(t, err)
	equal(t, "scale", fmt.Sprint(stored.Spec, stored.Status), "{3} {1 site=a}")
}

// untilTheEnd returns the sorted events until the server ends a watch.
func untilTheEnd(t *testing.T, watched watch.Interface) string {
	t.Helper()
	lines := []string{}
	late := time.After(patience)
	for {
		select {
		case event, open := <-watched.ResultChan():
			if !open {
				slices.Sort(lines)
				return fmt.Sprint(lines)
			}
			object, err := meta.Accessor(event.Object)
			must(t, err)
			lines = append(lines, string(event.Type)+" "+object.GetName())
		case <-late:
			t.Fatalf("the watch does not end; events: %v", lines)
		}
	}
}
