// Tests of `kubectl-informer serve` through the kubeconfig that it writes, or of a real server.

package clients

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// served returns the client configuration of the kubeconfig.
func served(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("SERVE_KUBECONFIG")
	if path == "" {
		t.Fatal("SERVE_KUBECONFIG must name the kubeconfig of a running `kubectl-informer serve`; verify/clients/run sets it")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	config.ContentType = "application/json"
	return config
}

// verify/clients/run starts the server with a fault for this user agent.
func TestServeHasTheFaultOfItsCommandLine(t *testing.T) {
	unlucky := served(t)
	unlucky.UserAgent = "unlucky"
	refused, err := kubernetes.NewForConfig(unlucky)
	must(t, err)
	_, err = refused.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	said(t, refusal(err), "503 ServiceUnavailable: the server is currently unable to handle the request")
}

func TestServeAcceptsAClientOfItsKubeconfig(t *testing.T) {
	client, err := kubernetes.NewForConfig(served(t))
	must(t, err)
	version, err := client.Discovery().ServerVersion()
	must(t, err)
	if !strings.HasPrefix(version.GitVersion, "v1.36.") {
		t.Fatalf("version %s", version.GitVersion)
	}
	preferred, err := discovery.ServerPreferredResources(client.Discovery())
	must(t, err)
	kinds := map[string]bool{}
	for _, list := range preferred {
		for _, resource := range list.APIResources {
			kinds[list.GroupVersion+" "+resource.Kind] = true
		}
	}
	for _, kind := range []string{"v1 Pod", "apps/v1 Deployment", "coordination.k8s.io/v1 Lease"} {
		equal(t, kind, kinds[kind], true)
	}

	// Other tests use the same server.
	name := "serve-" + rand.String(8)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace("default"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }))
	told := follow(t, factory.Core().V1().ConfigMaps().Informer())
	maps := client.CoreV1().ConfigMaps("default")
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	stored, err := maps.Create(t.Context(), made, metav1.CreateOptions{})
	must(t, err)
	told.expect("add " + name + " " + stored.ResourceVersion)
	must(t, maps.Delete(t.Context(), name, metav1.DeleteOptions{}))
	if line := told.next(); !strings.HasPrefix(line, "delete "+name+" ") {
		t.Fatal(line)
	}
}
