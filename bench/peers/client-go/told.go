// What a handler was told so far: written by the handler, waited for by the script of a run.

package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// patience is for how long nothing may be told while something is awaited: a relist takes half a minute, a pause after a failure as long at most.
const patience = 2 * time.Minute

// told has the counts of one handler.
type told struct {
	additions atomic.Int64
	updates   atomic.Int64
	// containers is what a handler has found in objects.
	containers atomic.Int64
	awaited    atomic.Int64
	reached    chan struct{}

	mutex     sync.Mutex
	latencies []uint32
}

func newTold() *told {
	return &told{reached: make(chan struct{}, 1)}
}

// added is called with the number of containers by a handler that looks into objects.
func (t *told) added(containers int) {
	t.additions.Add(1)
	t.containers.Add(int64(containers))
}

// updated is called with the time of sending (bench/ts, nanoseconds since 1970) by a handler that looks into objects.
func (t *told) updated(sent string) {
	if nanos, err := strconv.ParseInt(sent, 10, 64); err == nil {
		t.mutex.Lock()
		t.latencies = append(t.latencies, micros(time.Now().UnixNano()-nanos))
		t.mutex.Unlock()
	}
	if t.updates.Add(1) == t.awaited.Load() {
		select {
		case t.reached <- struct{}{}:
		default:
		}
	}
}

// micros is at most an hour; a part of a microsecond counts as one.
func micros(nanos int64) uint32 {
	return uint32(min(max((nanos+999)/1000, 0), 3_600_000_000))
}

// waitForUpdates returns true when so many changes have been told since the program began, and false after the time.
func (t *told) waitForUpdates(count int64, within time.Duration) bool {
	t.awaited.Store(count)
	over := time.After(within)
	for t.updates.Load() < count {
		select {
		case <-t.reached:
		case <-over:
			return t.updates.Load() >= count
		}
	}
	return true
}

// waitForAll fails when nothing was told for two minutes.
func (t *told) waitForAll(count int64) error {
	for before := t.updates.Load(); !t.waitForUpdates(count, patience); before = t.updates.Load() {
		if after := t.updates.Load(); after == before {
			return fmt.Errorf("after %d of %d changes no more are told", after, count)
		}
	}
	return nil
}

// percentile is the shortest latency that so many of a hundred stay within, nil if there is none.
func (t *told) percentile(percent int) *float64 {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return percentile(t.latencies, percent)
}

func percentile(latencies []uint32, percent int) *float64 {
	slices.Sort(latencies)
	rank := (len(latencies)*percent + 99) / 100
	if rank == 0 {
		return nil
	}
	found := float64(latencies[rank-1])
	return &found
}
