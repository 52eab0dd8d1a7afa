// A port of client-go's BenchmarkSharedIndexInformer outside a test, so that both programs run for the same
// time and count in the same way.
//
// Each read accesses every pod. A write counts when the handler has received it and finds it, or a later
// state, in a new read.
// As in the original, at most ten writes are in flight, and pods have only metadata.

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	namespace = "default"
	// window is queuedEvents of client-go's benchmark.
	window = 10
)

func reads(arguments []string) error {
	flags := flag.NewFlagSet("reads", flag.ContinueOnError)
	count := flags.Int("pods", 10_000, "pods in the cache")
	readers := flags.Int("readers", 0, "number of reading goroutines")
	seconds := flags.Int("seconds", 3, "duration of the measurement in seconds")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := createPods(*count)
	watcher := watch.NewFakeWithChanSize(1, false)
	informer := fakeInformer(watcher, pods)
	var writes, reads atomic.Int64
	under := make(chan struct{}, window)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			if isStored(informer.GetIndexer(), object.(*corev1.Pod)) {
				writes.Add(1)
			}
			<-under
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	<-registration.HasSyncedChecker().Done()
	go write(watcher, pods, under)
	for range *readers {
		go func() {
			for ctx.Err() == nil {
				length := 0
				err := cache.ListAllByNamespace(informer.GetIndexer(), namespace, labels.Everything(), func(object any) {
					length += len(object.(*corev1.Pod).Name)
				})
				if err != nil || length == 0 {
					panic(fmt.Sprint("a read found no pods: ", err))
				}
				reads.Add(1)
			}
		}()
	}
	// Warm-up of one second: goroutines start.
	time.Sleep(time.Second)
	readsBefore, writesBefore, started := reads.Load(), writes.Load(), begin()
	time.Sleep(time.Duration(*seconds) * time.Second)
	took, _ := started.spent()
	return say(map[string]any{
		"readers":      *readers,
		"reads_per_s":  float64(reads.Load()-readsBefore) / took,
		"writes_per_s": float64(writes.Load()-writesBefore) / took,
	})
}

func createPods(count int) []corev1.Pod {
	pods := make([]corev1.Pod, count)
	for i := range pods {
		pods[i].ObjectMeta = metav1.ObjectMeta{
			Name:            rand.String(20),
			Namespace:       namespace,
			ResourceVersion: strconv.Itoa(i + 1),
		}
	}
	return pods
}

// fakeInformer returns an informer that lists the pods and receives the events of the watcher.
func fakeInformer(watcher watch.Interface, pods []corev1.Pod) cache.SharedIndexInformer {
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{Items: pods}
			list.ResourceVersion = strconv.Itoa(len(pods))
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watcher, nil
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		unstreamed{source},
		&corev1.Pod{},
		cache.SharedIndexInformerOptions{
			ResyncPeriod: time.Minute,
			Indexers:     cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		},
	)
}

// unstreamed is a source that does not support streaming lists.
type unstreamed struct {
	*cache.ListWatch
}

func (unstreamed) IsWatchListSemanticsUnSupported() bool {
	return true
}

// isStored returns whether a new read finds the received state or a later one.
func isStored(indexer cache.Indexer, pod *corev1.Pod) bool {
	stored, found, err := indexer.GetByKey(key(pod))
	if err != nil || !found {
		return false
	}
	return revision(stored.(*corev1.Pod)) >= revision(pod)
}

func revision(pod *corev1.Pod) int {
	revision, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		panic(err) // cannot fail: createPods and write set a number
	}
	return revision
}

// write changes one pod after the other. The step is prime, and reaches all pods if it does not divide their
// number.
func write(watcher *watch.FakeWatcher, pods []corev1.Pod, under chan<- struct{}) {
	for i := 0; ; i++ {
		pod := pods[i*7919%len(pods)]
		pod.ResourceVersion = strconv.Itoa(len(pods) + 1 + i)
		under <- struct{}{}
		watcher.Modify(&pod)
	}
}
