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
	"regexp"
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
	"k8s.io/client-go/rest"
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
	// The default policy of a job is Orphan. With it a real server waits for the garbage collector, which does
	// not run.
	now, background := int64(0), metav1.DeletePropagationBackground
	must(t, client.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}))
	_, err = client.Get(t.Context(), name, metav1.GetOptions{})
	equal(t, "not found", apierrors.IsNotFound(err), true)
}

func TestClientsWithoutAContentTypeSendProtobuf(t *testing.T) {
	t.Parallel()
	client, noted := start(t).defaultClient()
	core, apps := client.CoreV1(), client.AppsV1()
	template := podTemplate()
	lives(t, core.ConfigMaps("default"), &corev1.ConfigMap{BinaryData: map[string][]byte{"k": {0, 255}}})
	lives(t, core.Secrets("default"), &corev1.Secret{Data: map[string][]byte{"k": {0, 255}}})
	lives(t, core.Services("default"), &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}})
	lives(t, core.Pods("default"), &corev1.Pod{Spec: template.Spec})
	lives(t, core.Nodes(), &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}})
	lives(t, core.Events("default"), &corev1.Event{EventTime: metav1.NowMicro(), ReportingController: "c", ReportingInstance: "i", Action: "a", Reason: "r"})
	lives(t, core.ResourceQuotas("default"), &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}})
	lives(t, apps.Deployments("default"), &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: matching(template), Template: template}})
	lives(t, apps.ControllerRevisions("default"), &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"a":[1]}`)}})
	once := podTemplate()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	lives(t, client.BatchV1().Jobs("default"), &batchv1.Job{Spec: batchv1.JobSpec{Template: once}})
	renewed := metav1.NowMicro()
	lives(t, client.CoordinationV1().Leases("default"), &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
	lives(t, client.DiscoveryV1().EndpointSlices("default"), &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}})
	lives(t, client.NetworkingV1().NetworkPolicies("default"), &networkingv1.NetworkPolicy{})
	lives(t, client.PolicyV1().PodDisruptionBudgets("default"), &policyv1.PodDisruptionBudget{})
	lives(t, client.RbacV1().ClusterRoles(), &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}})
	lives(t, client.StorageV1().StorageClasses(), &storagev1.StorageClass{Provisioner: "p"})
	equal(t, "content types", noted.types, map[string][]string{
		"POST":   {protobufType},
		"PUT":    {protobufType},
		"PATCH":  {string(types.StrategicMergePatchType)},
		"DELETE": {protobufType},
	})
}

// podTemplate returns a template that a real server accepts.
func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func matching(template corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: template.Labels}
}

func TestSubresourcesReviewsAndCollectionsAcceptProtobuf(t *testing.T) {
	t.Parallel()
	client, noted := start(t).defaultClient()
	deployments := client.AppsV1().Deployments("default")
	one, template := int32(1), podTemplate()
	spec := appsv1.DeploymentSpec{Replicas: &one, Selector: matching(template), Template: template}
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	scale, err := deployments.GetScale(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	scale.Spec.Replicas = 5
	_, err = deployments.UpdateScale(t.Context(), "a", scale, metav1.UpdateOptions{})
	must(t, err)
	scaled, err := deployments.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	equal(t, "replicas", *scaled.Spec.Replicas, 5)
	scaled.Status.Replicas, scaled.Status.ReadyReplicas = 5, 4
	scaled, err = deployments.UpdateStatus(t.Context(), scaled, metav1.UpdateOptions{})
	must(t, err)
	equal(t, "ready replicas", scaled.Status.ReadyReplicas, 4)
	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: template.Spec}, metav1.CreateOptions{})
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
// The embedded server has none, because null fields are absent in both formats.
var skew []string

// realSkew contains the fields of a real server. It decodes a time of zero in protobuf as a pointer to zero,
// which it returns as null, and in JSON as no time. Of the drawn objects that it accepts, only those of the
// kind Lease have such a time.
var realSkew = []string{
	"f:spec.f:acquireTime in protobuf",
	"f:spec.f:renewTime in protobuf",
	"spec.acquireTime in protobuf",
	"spec.renewTime in protobuf",
}

// realStatuses contains the kinds that a real server creates without a spec, so that their status can be
// compared.
var realStatuses = []string{"Namespace", "Node", "PodDisruptionBudget", "ResourceClaim", "ResourceQuota"}

// validated contains the kinds that the embedded server validates. It rejects most objects with random fields.
var validated = []string{
	"CSIDriver", "ControllerRevision", "CronJob", "DaemonSet", "Deployment", "EndpointSlice", "Event", "FlowSchema",
	"HorizontalPodAutoscaler",
	"Ingress", "IngressClass", "Job", "LimitRange", "NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim", "Pod",
	"PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet",
	"ReplicationController", "ResourceQuota", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "RuntimeClass", "Service",
	"StatefulSet", "StorageClass",
	// Access reviews, which must name either a resource or a path.
	"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview",
}

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
	sender, err := rest.HTTPClientFor(s.connection())
	must(t, err)
	_, isReal := s.api.(*real)
	raw := rawClient{t: t, url: s.connection().Host, http: sender, isReal: isReal}
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
	if !isReal {
		equal(t, "fields of only one format", slices.Sorted(maps.Keys(skewed)), skew)
		return
	}
	equal(t, "fields of only one format", slices.Sorted(maps.Keys(skewed)), realSkew)
	slices.Sort(raw.statuses)
	equal(t, "kinds with a status", raw.statuses, realStatuses)
}

// rawClient sends encoded bodies.
type rawClient struct {
	t    *testing.T
	url  string
	http *http.Client
	// isReal is whether the server is a real one.
	isReal bool
	// statuses contains the kinds whose status was compared.
	statuses []string
}

// compare sends drawn objects of a kind in both formats and compares the answers.
func (c *rawClient) compare(kind schema.GroupVersionKind, path string, hasStatus bool, skewed map[string]bool) {
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
		// Some reviews are rejected, with the same message in both formats. A server rejects most objects of a
		// kind that it validates, so its answers are only required to be equal.
		if accepted == 0 && !c.isReal && !slices.Contains(validated, kind.Kind) {
			c.t.Errorf("%s %s: every object was rejected", method, path)
		}
	}
	both("POST", path, "")
	// A created object has no status, so the status is compared with an update.
	if !hasStatus {
		return
	}
	made := c.send("POST", path, "application/json", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name))
	if made["reason"] == "Invalid" && (c.isReal || slices.Contains(validated, kind.Kind)) {
		return
	}
	if made["kind"] != kind.Kind {
		c.t.Fatalf("%s is not created: %v", path, made)
	}
	c.statuses = append(c.statuses, kind.Kind)
	revision := made["metadata"].(map[string]any)["resourceVersion"].(string)
	both("PUT", path+"/"+name+"/status", revision)
	if c.isReal {
		c.remove(kind, path+"/"+name)
	}
}

// remove deletes an object, because other tests use the same server.
func (c *rawClient) remove(kind schema.GroupVersionKind, path string) {
	c.t.Helper()
	c.send("DELETE", path, "application/json", nil)
	if kind.Kind == "Namespace" {
		// No namespace controller runs, so the test removes the finalizer.
		c.send("PUT", path+"/finalize", "application/json", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, nameFor(kind)))
	}
	if left := c.send("GET", path, "application/json", nil); left["reason"] != "NotFound" {
		c.t.Errorf("%s is not deleted: %v", path, left)
	}
}

// quotedTime matches the time of a managed field in a message that quotes an object.
var quotedTime = regexp.MustCompile(`\\"time\\":\\"[^"]*\\",`)

func (c *rawClient) send(method, path, contentType string, body []byte) map[string]any {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(body))
	must(c.t, err)
	request.Header.Set("Content-Type", contentType)
	response, err := c.http.Do(request)
	must(c.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(c.t, err)
	if c.isReal {
		text = quotedTime.ReplaceAll(text, nil)
	}
	var object map[string]any
	must(c.t, json.Unmarshal(text, &object))
	if uid, found := unique(object, "metadata", "uid"); found {
		// The labels and the selector of a job have its uid.
		text = bytes.ReplaceAll(text, []byte(uid), []byte("uid"))
	}
	if address, found := unique(object, "spec", "clusterIP"); found && address != "None" {
		text = bytes.ReplaceAll(text, []byte(address), []byte("address"))
	}
	object = nil
	must(c.t, json.Unmarshal(text, &object))
	if metadata, found := object["metadata"].(map[string]any); found {
		// These values differ in each response.
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
		entries, _ := metadata["managedFields"].([]any)
		for _, entry := range entries {
			delete(entry.(map[string]any), "time")
		}
	}
	if c.isReal {
		sortRandomOrders(object)
	}
	return object
}

// unique returns a text of an object that differs in each response.
func unique(object map[string]any, part, member string) (string, bool) {
	members, _ := object[part].(map[string]any)
	text, _ := members[member].(string)
	return text, text != ""
}

// sortRandomOrders sorts the validation errors of a response, and the rules of a user. Their order differs
// between equal requests to a real server, which validates maps in Go's random order of iteration.
func sortRandomOrders(object map[string]any) {
	inOrder := func(of any, member string) bool {
		parent, _ := of.(map[string]any)
		values, found := parent[member].([]any)
		slices.SortFunc(values, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return found
	}
	inOrder(object["status"], "resourceRules")
	inOrder(object["status"], "nonResourceRules")
	if inOrder(object["details"], "causes") {
		// The errors of the message are "[error, error]", and an error may contain commas and brackets.
		message := strings.NewReplacer("[", "", "]", "").Replace(object["message"].(string))
		_, errors, _ := strings.Cut(message, " is invalid: ")
		parts := strings.Split(errors, ", ")
		slices.Sort(parts)
		object["message"] = parts
	}
}

// differences fails if two values of a member differ, and records members that only one format has.
func (c *rawClient) differences(member string, fromJSON, fromProtobuf any, skewed map[string]bool) {
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
	case *corev1.Pod:
		// The server computes these, and rejects other values.
		object.Spec.Priority, object.Spec.PriorityClassName, object.Spec.PreemptionPolicy = nil, "", nil
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
