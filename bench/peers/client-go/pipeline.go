// Measures two parts of the pipeline: a work queue, and the delivery of each event to many handlers.

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// queue measures add, get and done of one key after the other on one goroutine, alternating between 100 keys
// as client-go's BenchmarkQueue does.
func queue(arguments []string) error {
	flags := flag.NewFlagSet("queue", flag.ContinueOnError)
	items := flags.Int("items", 3_000_000, "number of keys that pass through the queue")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	started := begin()
	for i := range *items {
		q.Add(keys[i%len(keys)])
		key, _ := q.Get()
		q.Done(key)
	}
	took, _ := started.spent()
	return say(map[string]float64{"ns_per_item": took * 1e9 / float64(*items)})
}

// fanOut measures the delivery of each event to many handlers. The clock stops after each handler has
// received every event.
func fanOut(arguments []string) error {
	flags := flag.NewFlagSet("fan-out", flag.ContinueOnError)
	handlers := flags.Int("handlers", 64, "handlers")
	events := flags.Int("events", 200_000, "events")
	count := flags.Int("pods", 1000, "pods in the cache")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := createPods(*count)
	watcher := watch.NewFakeWithChanSize(64, false)
	informer := fakeInformer(watcher, pods)
	var told sync.WaitGroup
	told.Add(*handlers)
	var synced []cache.ResourceEventHandlerRegistration
	for range *handlers {
		mine := *events
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, _ any) {
				if mine--; mine == 0 {
					told.Done()
				}
			},
		})
		if err != nil {
			return err
		}
		synced = append(synced, registration)
	}
	go informer.RunWithContext(ctx)
	for _, registration := range synced {
		<-registration.HasSyncedChecker().Done()
	}
	started := begin()
	for i := range *events {
		pod := pods[i%len(pods)]
		pod.ResourceVersion = strconv.Itoa(len(pods) + 1 + i)
		watcher.Modify(&pod)
	}
	told.Wait()
	took, cpu := started.spent()
	perEvent := float64(time.Second) / float64(*events)
	return say(map[string]any{
		"handlers":         *handlers,
		"ns_per_event":     took * perEvent,
		"cpu_ns_per_event": cpu * perEvent,
	})
}
