// Tests of protobuf bodies, which Go clients send for built-in kinds by default.

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// bodies records the content types of requests with a body.
type bodies struct {
	next http.RoundTripper
	lock sync.Mutex
	// types contains the content types by method.
	types map[string][]string
}

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		b.lock.Lock()
		of := r.Header.Get("Content-Type")
		if !slices.Contains(b.types[r.Method], of) {
			b.types[r.Method] = append(b.types[r.Method], of)
		}
		b.lock.Unlock()
	}
	return b.next.RoundTrip(r)
}

// defaultClient returns a client without a configured content type, and its recorded content types.
func (s *server) defaultClient() (kubernetes.Interface, *bodies) {
	s.t.Helper()
	config := s.config()
	config.ContentType = ""
	noted := &bodies{types: map[string][]string{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		noted.next = next
		return noted
	})
	client, err := kubernetes.NewForConfig(config)
	must(s.t, err)
	return client, noted
}

// typed contains the methods of every generated client of one kind.
type typed[T metav1.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// lives creates, updates, patches and deletes one object, and checks the object after each write.
func lives[T metav1.Object](t *testing.T, client typed[T], object T) {
	t.Helper()
	name := "a"
	object.SetName(name)
	object.SetLabels(map[string]string{"made": "by-protobuf"})
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	equal(t, "labels", made.GetLabels(), map[string]string{"made": "by-protobuf"})
	made.SetLabels(map[string]string{"updated": "by-protobuf"})
	updated, err := client.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	equal(t, "labels", updated.GetLabels(), map[string]string{"updated": "by-protobuf"})
	// An update with the returned object changes nothing, so protobuf has preserved its content.
	again, err := client.Update(t.Context(), updated, metav1.UpdateOptions{})
	must(t, err)
	equal(t, "revision of the same object", again.GetResourceVersion(), updated.GetResourceVersion())
	patched, err := client.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	must(t, err)
	equal(t, "annotations", patched.GetAnnotations(), map[string]string{"a": "b"})
	wrong := types.UID("another")
	err = client.Delete(t.Context(), name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	equal(t, "conflict", apierrors.IsConflict(err), true)
	now := int64(0)
	must(t, client.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	_, err = client.Get(t.Context(), name, metav1.GetOptions{})
	equal(t, "not found", apierrors.IsNotFound(err), true)
}

func TestClientsWithoutAContentTypeSendProtobuf(t *testing.T) {
	t.Parallel()
	client, noted := start(t).defaultClient()
	core, apps := client.CoreV1(), client.AppsV1()
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	lives(t, core.ConfigMaps("default"), &corev1.ConfigMap{BinaryData: map[string][]byte{"k": {0, 255}}})
	lives(t, core.Secrets("default"), &corev1.Secret{Data: map[string][]byte{"k": {0, 255}}})
	lives(t, core.Services("default"), &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}})
	lives(t, core.Pods("default"), &corev1.Pod{Spec: template.Spec})
	lives(t, core.Nodes(), &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}})
	lives(t, core.Events("default"), &corev1.Event{EventTime: metav1.NowMicro()})
	lives(t, core.ResourceQuotas("default"), &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}})
	lives(t, apps.Deployments("default"), &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}})
	lives(t, apps.ControllerRevisions("default"), &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"a":[1]}`)}})
	lives(t, client.BatchV1().Jobs("default"), &batchv1.Job{Spec: batchv1.JobSpec{Template: template}})
	renewed := metav1.NowMicro()
	lives(t, client.CoordinationV1().Leases("default"), &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
	lives(t, client.DiscoveryV1().EndpointSlices("default"), &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}})
	lives(t, client.NetworkingV1().NetworkPolicies("default"), &networkingv1.NetworkPolicy{})
	lives(t, client.PolicyV1().PodDisruptionBudgets("default"), &policyv1.PodDisruptionBudget{})
	lives(t, client.RbacV1().ClusterRoles(), &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}})
	lives(t, client.StorageV1().StorageClasses(), &storagev1.StorageClass{Provisioner: "p"})
	equal(t, "content types", noted.types, map[string][]string{
		"POST":   {protobufType},
		"PUT":    {protobufType},
		"PATCH":  {string(types.StrategicMergePatchType)},
		"DELETE": {protobufType},
	})
}

func TestSubresourcesReviewsAndCollectionsAcceptProtobuf(t *testing.T) {
	t.Parallel()
	client, noted := start(t).defaultClient()
	deployments := client.AppsV1().Deployments("default")
	one := int32(1)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DeploymentSpec{Replicas: &one}}, metav1.CreateOptions{})
	must(t, err)
	scale, err := deployments.GetScale(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	scale.Spec.Replicas = 5
	_, err = deployments.UpdateScale(t.Context(), "a", scale, metav1.UpdateOptions{})
	must(t, err)
	scaled, err := deployments.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	equal(t, "replicas", *scaled.Spec.Replicas, 5)
	scaled.Status.ReadyReplicas = 4
	scaled, err = deployments.UpdateStatus(t.Context(), scaled, metav1.UpdateOptions{})
	must(t, err)
	equal(t, "ready replicas", scaled.Status.ReadyReplicas, 4)
	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	must(t, err)
	// The method Bind is not generated, and sends JSON.
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	must(t, client.CoreV1().RESTClient().Post().UseProtobufAsDefault().Namespace("default").Resource("pods").Name("p").SubResource("binding").Body(binding).Do(t.Context()).Error())
	bound, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	must(t, err)
	equal(t, "node", bound.Spec.NodeName, "n")
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}}, metav1.CreateOptions{})
	must(t, err)
	equal(t, "allowed", review.Status.Allowed, true)
	equal(t, "verb", review.Spec.ResourceAttributes.Verb, "get")
	must(t, deployments.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	left, err := deployments.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	equal(t, "deployments", len(left.Items), 0)
	equal(t, "content types", noted.types, map[string][]string{
		"POST":   {protobufType},
		"PUT":    {protobufType},
		"DELETE": {protobufType},
	})
}

// skew contains the fields that only one format preserves, because their type in Kubernetes 1.36 differs from
// that in client-go 0.37. Fields that Kubernetes 1.36 does not have are dropped from both formats. The test
// fails if one of them does not occur, so that entries are removed when the versions agree.
//
// There are none since null fields are absent in both formats.
var skew []string

// rounds is the number of objects drawn per kind. 2 in 10 pointers are nil, so each field is present in some
// objects and absent in others.
const rounds = 8

func TestProtobufAndJSONHaveTheSameResults(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, err := kubernetes.NewForConfig(s.config())
	must(t, err)
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	must(t, err)
	raw := rawClient{t, s.url}
	skewed, compared := map[string]bool{}, 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		named := map[string]bool{}
		for _, r := range list.APIResources {
			named[r.Name] = true
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if !scheme.Scheme.Recognizes(kind) || !slices.Contains(r.Verbs, "create") || strings.Contains(r.Name, "/") || r.Kind == "Binding" {
				continue
			}
			path := "/apis/" + list.GroupVersion
			if version.Group == "" {
				path = "/api/" + version.Version
			}
			if r.Namespaced {
				path += "/namespaces/default"
			}
			raw.compare(kind, path+"/"+r.Name, named[r.Name+"/status"], skewed)
			compared++
		}
	}
	if compared < 55 {
		t.Errorf("only %d kinds", compared)
	}
	equal(t, "fields of only one format", slices.Sorted(maps.Keys(skewed)), skew)
}

// rawClient sends encoded bodies.
type rawClient struct {
	t   *testing.T
	url string
}

// compare sends drawn objects of a kind in both formats and compares the answers.
func (c rawClient) compare(kind schema.GroupVersionKind, path string, hasStatus bool, skewed map[string]bool) {
	c.t.Helper()
	name := nameFor(kind)
	both := func(method, path, revision string) {
		c.t.Helper()
		accepted := 0
		for seed := range int64(rounds) {
			asProtobuf, asJSON := encoded(c.t, drawn(c.t, kind, revision, seed))
			fromJSON := c.send(method, path+"?dryRun=All", "application/json", asJSON)
			fromProtobuf := c.send(method, path+"?dryRun=All", protobufType, asProtobuf)
			c.differences(kind.Kind, fromJSON, fromProtobuf, skewed)
			if fromJSON["kind"] == kind.Kind {
				accepted++
			}
		}
		// Some reviews are rejected, with the same message in both formats.
		if accepted == 0 {
			c.t.Errorf("%s %s: every object was rejected", method, path)
		}
	}
	both("POST", path, "")
	// A created object has no status, so the status is compared with an update.
	if !hasStatus {
		return
	}
	made := c.send("POST", path, "application/json", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name))
	revision := made["metadata"].(map[string]any)["resourceVersion"].(string)
	both("PUT", path+"/"+name+"/status", revision)
}

func (c rawClient) send(method, path, contentType string, body []byte) map[string]any {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(body))
	must(c.t, err)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	must(c.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(c.t, err)
	var object map[string]any
	must(c.t, json.Unmarshal(text, &object))
	if metadata, found := object["metadata"].(map[string]any); found {
		// These values differ in each response.
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
	}
	return object
}

// differences fails if two values of a member differ, and records members that only one format has.
func (c rawClient) differences(member string, fromJSON, fromProtobuf any, skewed map[string]bool) {
	c.t.Helper()
	switch wanted := fromJSON.(type) {
	case map[string]any:
		if has, same := fromProtobuf.(map[string]any); same {
			for name, value := range wanted {
				if other, found := has[name]; found {
					c.differences(name, value, other, skewed)
				} else {
					skewed[member+"."+name+" in JSON"] = true
				}
			}
			for name := range has {
				if _, found := wanted[name]; !found {
					skewed[member+"."+name+" in protobuf"] = true
				}
			}
			return
		}
	case []any:
		if has, same := fromProtobuf.([]any); same && len(has) == len(wanted) {
			for at := range wanted {
				c.differences(member, wanted[at], has[at], skewed)
			}
			return
		}
	}
	if !reflect.DeepEqual(fromJSON, fromProtobuf) {
		c.t.Errorf("%s: JSON %#v, protobuf %#v", member, fromJSON, fromProtobuf)
	}
}

// nameFor returns the name for objects of a kind. It includes group and version, because kinds can differ
// only in these and share their storage.
func nameFor(kind schema.GroupVersionKind) string {
	return strings.ToLower(kind.Kind + "-" + kind.Version + kind.Group)
}

// withValidKeys replaces what the server would reject in the kinds that it validates.
func withValidKeys(object runtime.Object) {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		object.Data = renamed(object.Data, "t")
		object.BinaryData = renamed(object.BinaryData, "b")
	case *corev1.Secret:
		object.Type = corev1.SecretTypeOpaque
		object.Data = renamed(object.Data, "d")
		object.StringData = renamed(object.StringData, "s")
	}
}

// renamed returns the values of a map with the keys prefix0, prefix1 and so on, in the order of the old keys.
func renamed[V any](values map[string]V, prefix string) map[string]V {
	if values == nil {
		return nil
	}
	valid := map[string]V{}
	for at, key := range slices.Sorted(maps.Keys(values)) {
		valid[fmt.Sprintf("%s%d", prefix, at)] = values[key]
	}
	return valid
}

// drawn returns an object of a kind with random fields that follow from the seed.
func drawn(t *testing.T, kind schema.GroupVersionKind, revision string, seed int64) runtime.Object {
	t.Helper()
	object, err := scheme.Scheme.New(kind)
	must(t, err)
	filler := randfill.NewWithSeed(seed).NilChance(0.2).NumElements(0, 2).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(5000), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*v = intstr.FromString(c.String(0))
			}
		},
		func(at *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*at = metav1.Unix(c.Int63n(1<<33), 0)
			}
		},
		func(at *metav1.MicroTime, c randfill.Continue) {
			if c.Bool() {
				*at = metav1.MicroTime{Time: time.UnixMicro(c.Int63n(1 << 53))}
			}
		},
		func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte(`{"a":[1,null,"x"]}`) },
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			if c.Bool() {
				meta.Labels = map[string]string{"a": "b", "c": ""}
			}
		},
		func(_ *metav1.TypeMeta, _ randfill.Continue) {},
	)
	filler.Fill(object)
	withValidKeys(object)
	if namespace, found := object.(*corev1.Namespace); found {
		// Any other phase is rejected unless the namespace is being deleted.
		namespace.Status.Phase = corev1.NamespaceActive
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if named, found := object.(metav1.Object); found {
		named.SetName(nameFor(kind))
		named.SetResourceVersion(revision)
	}
	return object
}

// encoded returns an object in both formats. The JSON is that of the decoded protobuf, because protobuf does
// not distinguish empty from absent fields.
func encoded(t *testing.T, object runtime.Object) (asProtobuf, asJSON []byte) {
	t.Helper()
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	var buffer bytes.Buffer
	must(t, serializer.Encode(object, &buffer))
	read, kind, err := serializer.Decode(buffer.Bytes(), nil, nil)
	must(t, err)
	read.GetObjectKind().SetGroupVersionKind(*kind)
	asJSON, err = json.Marshal(read)
	must(t, err)
	return buffer.Bytes(), asJSON
}
