// Tests that client-go and kubectl's packages read the OpenAPI documents of the server.

package clients

import (
	"io"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/util/proto"
)

// OpenAPISchema requests the document in protobuf. The models are those with which kubectl validates and explains.
func TestOpenAPISchemaHasTheModelsOfKubectl(t *testing.T) {
	client, err := kubernetes.NewForConfig(served(t))
	must(t, err)
	document, err := client.Discovery().OpenAPISchema()
	must(t, err)
	models, err := proto.NewOpenAPIData(document)
	must(t, err)
	pod, isKind := models.LookupModel("io.k8s.api.core.v1.PodSpec").(*proto.Kind)
	equal(t, "PodSpec is a kind", isKind, true)
	equal(t, "required", pod.IsRequired("containers"), true)
	containers := pod.Fields["containers"]
	equal(t, "merge key", containers.GetExtensions()["x-kubernetes-patch-merge-key"], any("name"))
	port := models.LookupModel("io.k8s.api.core.v1.HTTPGetAction").(*proto.Kind).Fields["port"]
	// kube-apiserver has a definition for the type.
	if reference, isReference := port.(proto.Reference); isReference {
		port = reference.SubSchema()
	}
	equal(t, "format", port.(*proto.Primitive).Format, "int-or-string")
	writes := 0
	for _, path := range document.GetPaths().GetPath() {
		if path.GetName() == "/api/v1/namespaces/{namespace}/pods" {
			for _, parameter := range path.GetValue().GetPost().GetParameters() {
				if parameter.GetParameter().GetBodyParameter().GetSchema().GetXRef() == "#/definitions/io.k8s.api.core.v1.Pod" {
					writes++
				}
			}
		}
	}
	equal(t, "bodies", writes, 1)
}

func TestOpenAPIV3HasTheGroupsOfDiscovery(t *testing.T) {
	client, err := kubernetes.NewForConfig(served(t))
	must(t, err)
	root := openapi3.NewRoot(client.Discovery().OpenAPIV3())
	spec, err := root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	must(t, err)
	deployment := spec.Components.Schemas["io.k8s.api.apps.v1.DeploymentSpec"]
	equal(t, "required", deployment.Required, []string{"selector", "template"})
}

// Clients keep the document, and request it again with its ETag.
func TestOpenAPIDocumentIsNotSentAgain(t *testing.T) {
	config := served(t)
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"} {
		etag, statuses := "", []int{}
		for range 2 {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/openapi/v2", nil)
			must(t, err)
			request.Header.Set("Accept", accept)
			request.Header.Set("If-None-Match", etag)
			response, err := client.Do(request)
			must(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			must(t, err)
			must(t, response.Body.Close())
			etag, statuses = response.Header.Get("Etag"), append(statuses, response.StatusCode)
		}
		equal(t, accept, statuses, []int{200, 304})
	}
}
