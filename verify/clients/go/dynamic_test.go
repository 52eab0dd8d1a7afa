// Tests of client-go's dynamic and metadata informers: objects without a Go type, and objects without
// content.

package clients

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/util/consistencydetector"
)

var (
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": int64(7), "price": 1.5},
	}}
}

func TestDynamicInformerOfACustomKindRecoversFromFailures(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, err := dynamic.NewForConfig(s.config())
	must(t, err)
	in := client.Resource(widgets).Namespace("default")
	create := func(name string) {
		t.Helper()
		_, err := in.Create(t.Context(), widget(name), metav1.CreateOptions{})
		must(t, err)
	}
	create("a")
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(widgets).Informer()
	told := follow(t, informer)
	told.expect("add a 2")
	create("b")
	told.expect("add b 3")
	equal(t, "requests", s.requests("widgets"), firstRequests(2))

	s.inject("freeze watch *")
	create("c")
	must(t, in.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.inject("break watch *; thaw watch *")
	told.expect("add c 4", "delete a 5")
	equal(t, "requests", s.requests("widgets"), []string{"watch from 3"})

	s.inject("freeze watch *")
	must(t, in.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	create("d")
	s.inject("expire history; cut watch *; thaw watch *")
	told.expectAnyOrder("vanished b 3", "update c 4", "add d 7")
	create("e")
	told.expect("add e 8")
	equal(t, "requests", s.requests("widgets"), slices.Concat([]string{"watch from 5"}, either(
		[]string{"watch all from 5", "list from 7 exactly"},
		[]string{"list from 5", "watch from 7"},
	)))

	kept, _, err := informer.GetStore().GetByKey("default/d")
	must(t, err)
	equal(t, "spec", kept.(*unstructured.Unstructured).Object["spec"], widget("d").Object["spec"])
}

// metadataScene returns a scene with an informer of metadata, after an update of a at revision 3.
//
// Its tests do not run in parallel, because it disables client-go's consistency detector for the whole
// process. Items of metadata lists have a kind, which client-go removes from the events of a watch, so the
// detector would panic.
func metadataScene(t *testing.T) scene {
	t.Helper()
	t.Cleanup(consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(false))
	s := start(t)
	write := s.writer(s.client())
	write.create("a")
	client, err := metadata.NewForConfig(s.config())
	must(t, err)
	informer := metadatainformer.NewFilteredSharedInformerFactory(client, 0, "default", nil).ForResource(podResource).Informer()
	told := s.follow(informer)
	told.expect("add a 2")
	write.label("a", "web")
	told.expect("update a 3")
	equal(t, "requests", s.requests("configmaps"), either([]string{"watch all"}, firstRequests(2)))
	return scene{server: s, configmaps: write, trace: told, informer: informer}
}

func TestMetadataInformerReceivesNoContent(t *testing.T) {
	sc := metadataScene(t)
	kept, _, err := sc.informer.GetStore().GetByKey("default/a")
	must(t, err)
	object := kept.(*metav1.PartialObjectMetadata)
	equal(t, "uid", object.UID != "", true)
	equal(t, "labels", object.Labels, map[string]string{"app": "web"})
}

func TestMetadataInformerMissesNoEvent(t *testing.T) {
	sc := metadataScene(t)
	sc.inject("freeze watch *")
	sc.create("b")
	sc.delete("a")
	sc.inject("cut watch *; thaw watch *")
	sc.expect("add b 4", "delete a 5")
	sc.asked("watch from 3")

	sc.inject("freeze watch *")
	sc.delete("b")
	sc.create("c")
	sc.inject("expire history; cut watch *; thaw watch *")
	sc.expectAnyOrder("vanished b 4", "add c 7")
	sc.keeps()
}
