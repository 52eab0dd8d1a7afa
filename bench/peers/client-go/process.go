// CPU time and resident memory of this process, as reported by the kernel.

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// cpuTime returns the user and system time of all threads, including those of the garbage collector.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // cannot fail: the arguments are valid
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// memory is resident memory in KiB: the current value, and the peak since the start of the process or since
// resetPeak.
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
		return m, fmt.Errorf("/proc/self/status has no VmRSS or VmHWM")
	}
	return m, nil
}

// resetPeak resets the peak to the current resident memory; see proc(5) for the 5.
func resetPeak() error {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
