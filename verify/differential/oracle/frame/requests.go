package frame

import (
	"io"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// pageSize is the page size of sequences with pages. The Rust side uses the same one.
const pageSize = 2

// Requests runs a sequence on a reflector of client-go. The reflector lists and watches the server in the
// Rust process, which records the requests.
func Requests(sequence *Sequence) []Answer {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// A reflector without an informer does not accept another error handler, and the default ones log, and
	// block while they do.
	utilruntime.ErrorHandlers = nil
	allowed.streams = sequence.Has("streaming")
	server := newFar()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(listWatch(server), &corev1.ConfigMap{}, store, cache.ReflectorOptions{ResyncPeriod: never})
	if sequence.Has("pages") {
		reflector.WatchListPageSize = pageSize
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	answers := make([]Answer, len(sequence.Operations))
	for at := range sequence.Operations {
		for turn := 0; ; turn++ {
			happened := server.operate(at, turn)
			if sequence.Operations[at].Verb == "start" && turn == 0 {
				running.Go(func() { reflector.Run(stop) })
			}
			time.Sleep(time.Duration(happened.Pass) * time.Millisecond)
			synctest.Wait()
			if !happened.More {
				break
			}
		}
		answers[at] = show(store.List())
	}
	close(stop)
	running.Wait()
	return answers
}

// listWatch returns the same kind of ListerWatcher that typed informers use.
func listWatch(transport http.RoundTripper) cache.ListerWatcher {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config := &rest.Config{
		Host:    "http://server",
		APIPath: "/api",
		// A rate limiter would change the pauses between requests, which are compared.
		QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &corev1.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		panic(err)
	}
	return cache.NewListWatchFromClient(client, "configmaps", metav1.NamespaceAll, fields.Everything())
}
