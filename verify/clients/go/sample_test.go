// Tests that the controller of docs/from-client-go.md has the same results in Go and in Rust.

package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-informer/kube-informer/verify/clients/go/sample"
)

func TestSampleControllersInGoAndRustHaveTheSameResults(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*testing.T, *server){"go": sampleInGo, "rust": sampleInRust} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			run(t, s)
			play(t, s.client())
		})
	}
}

func sampleInGo(t *testing.T, s *server) {
	ctx, stop := context.WithCancel(context.Background())
	client := s.client()
	labelled := informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = sample.App })
	apps := informers.NewSharedInformerFactoryWithOptions(client, 30*time.Second, labelled)
	others := informers.NewSharedInformerFactory(client, 30*time.Second)
	controller, err := sample.NewController(client, apps.Core().V1().ConfigMaps(), others.Apps().V1().Deployments())
	must(t, err)
	apps.StartWithContext(ctx)
	others.StartWithContext(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, 2) }()
	t.Cleanup(func() {
		stop()
		apps.Shutdown()
		others.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func sampleInRust(t *testing.T, s *server) {
	path := os.Getenv("FROM_CLIENT_GO")
	if path == "" {
		t.Fatal("FROM_CLIENT_GO must name the built example from_client_go; verify/clients/run sets it")
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	connection := s.connection()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: connection.Host, CertificateAuthority: connection.CAFile}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: connection.BearerToken}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "user"}
	config.CurrentContext = "it"
	must(t, clientcmd.WriteToFile(*config, kubeconfig))
	child := exec.Command(path, "--kubeconfig", kubeconfig)
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() {
		_ = input.Close()
		late := time.AfterFunc(patience, func() { _ = child.Process.Kill() })
		defer late.Stop()
		if err := child.Wait(); err != nil {
			t.Errorf("the controller failed: %v", err)
		}
	})
}

// play changes objects as users do, and waits for the controller to reconcile them.
func play(t *testing.T, client kubernetes.Interface) {
	maps, deployments := client.CoreV1().ConfigMaps("default"), client.AppsV1().Deployments("default")
	app := func(name, deployment string, replicas int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{sample.App: "true"}},
			Data:       map[string]string{"deploymentName": deployment, "replicas": strconv.Itoa(replicas)},
		}
	}
	awaits := func(wanted ...string) {
		t.Helper()
		var lines []string
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			list, err := deployments.List(t.Context(), metav1.ListOptions{})
			must(t, err)
			lines = nil
			for _, d := range list.Items {
				owner := "none"
				if controller := metav1.GetControllerOf(&d); controller != nil {
					owner = controller.Name
				}
				image := d.Spec.Template.Spec.Containers[0].Image
				lines = append(lines, fmt.Sprintf("%s: %d of %s, of %s", d.Name, *d.Spec.Replicas, image, owner))
			}
			slices.Sort(lines)
			if slices.Equal(lines, wanted) {
				return
			}
		}
		t.Fatalf("deployments %q do not become %q", lines, wanted)
	}
	for _, made := range []*corev1.ConfigMap{app("a", "web", 1), app("b", "db", 2), app("broken", "", 0)} {
		if made.Name == "broken" {
			made.Data["replicas"] = "many"
		}
		_, err := maps.Create(t.Context(), made, metav1.CreateOptions{})
		must(t, err)
	}
	unlabelled := app("unlabelled", "none", 1)
	unlabelled.Labels = nil
	_, err := maps.Create(t.Context(), unlabelled, metav1.CreateOptions{})
	must(t, err)
	awaits("db: 2 of nginx:latest, of b", "web: 1 of nginx:latest, of a")

	_, err = maps.Update(t.Context(), app("b", "db", 3), metav1.UpdateOptions{})
	must(t, err)
	awaits("db: 3 of nginx:latest, of b", "web: 1 of nginx:latest, of a")

	must(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	awaits("db: 3 of nginx:latest, of b", "web: 1 of nginx:latest, of a")

	scale := []byte(`{"spec":{"replicas":9}}`)
	_, err = deployments.Patch(t.Context(), "db", types.MergePatchType, scale, metav1.PatchOptions{})
	must(t, err)
	awaits("db: 3 of nginx:latest, of b", "web: 1 of nginx:latest, of a")

	// A deployment of another owner is not changed.
	db, err := deployments.Get(t.Context(), "db", metav1.GetOptions{})
	must(t, err)
	taken := db.DeepCopy()
	taken.ObjectMeta = metav1.ObjectMeta{Name: "taken"}
	_, err = deployments.Create(t.Context(), taken, metav1.CreateOptions{})
	must(t, err)
	_, err = maps.Create(t.Context(), app("c", "taken", 5), metav1.CreateOptions{})
	must(t, err)
	_, err = maps.Create(t.Context(), app("d", "last", 1), metav1.CreateOptions{})
	must(t, err)
	awaits("db: 3 of nginx:latest, of b", "last: 1 of nginx:latest, of d", "taken: 3 of nginx:latest, of none", "web: 1 of nginx:latest, of a")
}
