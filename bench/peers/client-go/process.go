// What the kernel says of this process: CPU time and resident memory.

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// cpuTime is that of all threads, user and system, the collector's included.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// memory is resident memory in KiB: now, and the most since the process began or since resetPeak.
type memory struct {
	resident, peak int64
}

func readMemory() (memory, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return memory{}, err
	}
	return memoryOf(string(status))
}

func memoryOf(status string) (memory, error) {
	m := memory{-1, -1}
	for line := range strings.Lines(status) {
		for name, field := range map[string]*int64{"VmRSS:": &m.resident, "VmHWM:": &m.peak} {
			if value, found := strings.CutPrefix(line, name); found {
				if _, err := fmt.Sscanf(value, "%d kB", field); err != nil {
					return m, fmt.Errorf("%q: %w", line, err)
				}
			}
		}
	}
	if m.resident < 0 || m.peak < 0 {
		return m, fmt.Errorf("/proc/self/status tells no memory")
	}
	return m, nil
}

// resetPeak lets the peak begin at what is resident now; proc(5) has the 5.
func resetPeak() error {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
