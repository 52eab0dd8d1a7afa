// Tests of the measurements and of the flags.

package main

import (
	"testing"
	"time"
)

func TestMemoryIsReadFromTheStatusOfAProcess(t *testing.T) {
	got, err := memoryOf("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  170204 kB\nVmRSS:\t   1016 kB\n")
	if want := (memory{resident: 1016, peak: 170204}); err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := memoryOf("Name:\tkthreadd\n"); err == nil {
		t.Errorf("a status without memory gives %v", got)
	}
}

func TestAPercentileIsTheLatencyAtItsRank(t *testing.T) {
	var latencies []uint32
	for i := range 200 {
		latencies = append(latencies, uint32(200-i))
	}
	for percent, want := range map[int]float64{50: 100, 99: 198, 100: 200} {
		if got := percentile(latencies, percent); got == nil || *got != want {
			t.Errorf("%d: %v, want %v", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != nil {
		t.Errorf("percentile without latencies: %v", *got)
	}
}

func TestAFractionOfAMicrosecondIsRoundedUp(t *testing.T) {
	for nanos, want := range map[int64]uint32{-5: 0, 0: 0, 1: 1, 1000: 1, 1001: 2, 1 << 62: 3_600_000_000} {
		if got := micros(nanos); got != want {
			t.Errorf("%d ns: %d, want %d", nanos, got, want)
		}
	}
}

func TestAWaiterIsWokenByTheUpdate(t *testing.T) {
	told := newTold()
	told.updated("")
	if told.waitForUpdates(2, 0) {
		t.Error("returned before the second update")
	}
	go told.updated("not a number")
	if !told.waitForUpdates(2, time.Minute) {
		t.Error("did not return after the second update")
	}
	if told.percentile(50) != nil {
		t.Error("a latency without a time stamp")
	}
}

func TestInvalidFlagsAreRejected(t *testing.T) {
	for _, arguments := range [][]string{{"--encoding", "cbor"}, {"--prune=maybe"}, {"--list", "all"}, {"--handler", "x"}, {"more"}, {"--kubeconfig", "x", "--relist", "1"}, {"--kubeconfig", "x", "--server", "y"}} {
		if o, err := parse(arguments); err == nil {
			t.Errorf("%v gives %v", arguments, o)
		}
	}
	if o, err := parse([]string{"--prune", "false", "--events", "5"}); err != nil || o.prune || o.events != 5 {
		t.Errorf("%v, %v", o, err)
	}
}
