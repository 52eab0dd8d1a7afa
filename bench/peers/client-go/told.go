// Counts of the events that a handler has received. The handler writes them; the run waits for them.

package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// patience is the maximum time without an event while a run waits for one. A relist takes about 30 s, and a
// pause after a failure at most a minute.
const patience = 2 * time.Minute

// told has the counts of one handler.
type told struct {
	additions atomic.Int64
	updates   atomic.Int64
	// containers is what the handler found in objects.
	containers atomic.Int64
	awaited    atomic.Int64
	reached    chan struct{}

	mutex     sync.Mutex
	latencies []uint32
}

func newTold() *told {
	return &told{reached: make(chan struct{}, 1)}
}

// added records a new object, with its number of containers, or a substitute if the handler reads only keys.
func (t *told) added(containers int) {
	t.additions.Add(1)
	t.containers.Add(int64(containers))
}

// updated records an update, with its time stamp (bench/ts, nanoseconds since 1970) if the handler reads
// objects.
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

// micros rounds up to microseconds and limits the result to one hour.
func micros(nanos int64) uint32 {
	return uint32(min(max((nanos+999)/1000, 0), 3_600_000_000))
}

// waitForUpdates returns true when the handler has received count updates since the program started, and
// false after the time.
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

// waitForAll waits for count updates. It returns an error if no update is received for two minutes.
func (t *told) waitForAll(count int64) error {
	for before := t.updates.Load(); !t.waitForUpdates(count, patience); before = t.updates.Load() {
		if after := t.updates.Load(); after == before {
			return fmt.Errorf("no more updates after %d of %d", after, count)
		}
	}
	return nil
}

// percentile returns the given percentile (nearest rank) in microseconds, or nil without latencies.
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
