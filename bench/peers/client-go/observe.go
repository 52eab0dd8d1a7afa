// Runs an informer over the pods of the source, with one handler, from its start to its last relist; the
// phases are those of bench/gauge.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// settle is the pause between the sync and the measurement of steady memory.
const settle = 2 * time.Second

// ask is the interval of requests for the source's count of watches.
const ask = 50 * time.Millisecond

// line is the printed result; bench/README.md defines the fields.
type line struct {
	Objects        int64    `json:"objects"`
	SyncS          float64  `json:"sync_s"`
	SyncCPUS       float64  `json:"sync_cpu_s"`
	PeakKiB        int64    `json:"peak_kib"`
	SteadyKiB      int64    `json:"steady_kib"`
	SteadyFreedKiB *int64   `json:"steady_freed_kib"`
	Events         int64    `json:"events"`
	Rate           int64    `json:"rate"`
	EventsPerS     *float64 `json:"events_per_s"`
	CPUUsPerEvent  *float64 `json:"cpu_us_per_event"`
	P50Us          *float64 `json:"p50_us"`
	P99Us          *float64 `json:"p99_us"`
	MaxUs          *float64 `json:"max_us"`
	WatchPeakKiB   *int64   `json:"watch_peak_kib"`
	Relists        int64    `json:"relists"`
	RelistS        *float64 `json:"relist_s"`
	RelistCPUS     *float64 `json:"relist_cpu_s"`
	RelistPeakKiB  *int64   `json:"relist_peak_kib"`
}

// start is the start of a phase.
type start struct {
	at  time.Time
	cpu time.Duration
}

func begin() start {
	return start{time.Now(), cpuTime()}
}

// spent returns the seconds and CPU seconds since the start.
func (s start) spent() (float64, float64) {
	return time.Since(s.at).Seconds(), (cpuTime() - s.cpu).Seconds()
}

func observe(o options) error {
	// client-go reads its feature gates from the environment on first use, which is below.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(o.list == "streaming")); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t, source := newTold(), newSource(o.server)
	started := begin()
	registration, err := informer(ctx, o, t)
	if err != nil {
		return err
	}
	// Done is closed when the informer has synced and the handler has received all objects.
	<-registration.HasSyncedChecker().Done()
	l := line{Events: o.events, Rate: o.rate, Relists: o.relist, Objects: t.additions.Load()}
	l.SyncS, l.SyncCPUS = started.spent()
	if l.Objects == 0 {
		return fmt.Errorf("the source has no objects")
	}
	if err := l.memory(source); err != nil {
		return err
	}
	if o.events > 0 {
		if err := l.watch(o, t, source); err != nil {
			return err
		}
	}
	if o.relist > 0 {
		if err := l.relist(o.relist, t, source); err != nil {
			return err
		}
	}
	return say(l)
}

func informer(ctx context.Context, o options, t *told) (cache.ResourceEventHandlerRegistration, error) {
	config := &rest.Config{Host: o.server}
	if o.kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
			return nil, err
		}
	}
	config.QPS = -1
	config.ContentType = "application/json"
	if o.encoding == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pods := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	if o.prune {
		if err := pods.SetTransform(prune); err != nil {
			return nil, err
		}
	}
	registration, err := pods.AddEventHandler(handler(o.handler, t))
	if err != nil {
		return nil, err
	}
	go pods.RunWithContext(ctx)
	return registration, nil
}

// prune is a transform that drops managedFields.
func prune(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}

func handler(kind string, t *told) cache.ResourceEventHandler {
	if kind == "keys" {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { t.added(len(key(object))) },
			UpdateFunc: func(_, object any) { key(object); t.updated("") },
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { t.added(len(object.(*corev1.Pod).Spec.Containers)) },
		UpdateFunc: func(_, object any) {
			t.updated(object.(*corev1.Pod).Annotations["bench/ts"])
		},
	}
}

// key returns the key that a controller's handler would add to its work queue.
func key(object any) string {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		panic(err) // it is a pod
	}
	return key
}

// memory records the peak of the sync, and steady memory before and after a forced garbage collection.
func (l *line) memory(source source) error {
	now, err := readMemory()
	if err != nil {
		return err
	}
	l.PeakKiB = now.peak
	source.synced()
	time.Sleep(settle)
	if now, err = readMemory(); err != nil {
		return err
	}
	l.SteadyKiB = now.resident
	runtime.GC()
	debug.FreeOSMemory()
	if now, err = readMemory(); err != nil {
		return err
	}
	l.SteadyFreedKiB = &now.resident
	return nil
}

func (l *line) watch(o options, t *told, source source) error {
	if err := resetPeak(); err != nil {
		return err
	}
	last := t.updates.Load() + o.events
	started := begin()
	emitted := make(chan error, 1)
	go func() { emitted <- source.emit(o.events, o.rate) }()
	if err := t.waitForAll(last); err != nil {
		return err
	}
	if err := <-emitted; err != nil {
		return err
	}
	took, cpu := started.spent()
	now, err := readMemory()
	if err != nil {
		return err
	}
	perSecond, perEvent := float64(o.events)/took, cpu*1e6/float64(o.events)
	l.EventsPerS, l.CPUUsPerEvent, l.WatchPeakKiB = &perSecond, &perEvent, &now.peak
	if o.handler == "objects" {
		l.P50Us, l.P99Us, l.MaxUs = t.percentile(50), t.percentile(99), t.percentile(100)
	}
	return nil
}

// relist measures relists. After each expiry it waits for a new watch and sends one event, which the client
// delivers after all changes of the list.
func (l *line) relist(times int64, t *told, source source) error {
	if err := resetPeak(); err != nil {
		return err
	}
	started := begin()
	for range times {
		if err := relistOnce(t, source); err != nil {
			return err
		}
	}
	took, cpu := started.spent()
	now, err := readMemory()
	if err != nil {
		return err
	}
	took, cpu = took/float64(times), cpu/float64(times)
	l.RelistS, l.RelistCPUS, l.RelistPeakKiB = &took, &cpu, &now.peak
	return nil
}

func relistOnce(t *told, source source) error {
	updates := t.updates.Load()
	before, err := source.watches()
	if err != nil {
		return err
	}
	if err := source.expire(); err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; time.Sleep(ask) {
		watches, err := source.watches()
		if err != nil {
			return err
		}
		if watches > before {
			break
		}
		if time.Now().After(until) {
			return errors.New("no new watch after the revision expired")
		}
	}
	if err := source.emit(1, 0); err != nil {
		return err
	}
	return t.waitForAll(updates + 1)
}
