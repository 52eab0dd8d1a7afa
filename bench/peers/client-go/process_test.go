// What is told of a run is taken from the right places.

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
		t.Errorf("a status without memory is %v", got)
	}
}

func TestAPercentileIsTheShortestThatSoManyStayWithin(t *testing.T) {
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
		t.Errorf("of none: %v", *got)
	}
}

func TestAPartOfAMicrosecondCountsAsOne(t *testing.T) {
	for nanos, want := range map[int64]uint32{-5: 0, 0: 0, 1: 1, 1000: 1, 1001: 2, 1 << 62: 3_600_000_000} {
		if got := micros(nanos); got != want {
			t.Errorf("%d ns: %d, want %d", nanos, got, want)
		}
	}
}

func TestWhoeverWaitsForAChangeIsWokenByIt(t *testing.T) {
	told := newTold()
	told.updated("")
	if told.waitForUpdates(2, 0) {
		t.Error("it has not come")
	}
	go told.updated("no number")
	if !told.waitForUpdates(2, time.Minute) {
		t.Error("it has come")
	}
	if told.percentile(50) != nil {
		t.Error("neither says when it was sent")
	}
}

func TestFlagsThatMeanNothingAreRefused(t *testing.T) {
	for _, arguments := range [][]string{{"--encoding", "cbor"}, {"--prune=maybe"}, {"--list", "all"}, {"--handler", "x"}, {"more"}, {"--kubeconfig", "x", "--relist", "1"}, {"--kubeconfig", "x", "--server", "y"}} {
		if o, err := parse(arguments); err == nil {
			t.Errorf("%v is %v", arguments, o)
		}
	}
	if o, err := parse([]string{"--prune", "false", "--events", "5"}); err != nil || o.prune || o.events != 5 {
		t.Errorf("%v, %v", o, err)
	}
}
