// Package frame runs operations on client-go: it reads sequences, runs each inside a bubble of virtual time,
// and writes the answer to every operation.
//
// It contains what every version of client-go supports. The modules next to it select the version, and add
// what only that version supports.
package frame

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Sequence is one line of the input.
type Sequence struct {
	Component  string      `json:"component"`
	Flags      []string    `json:"flags"`
	Limiter    *Limiter    `json:"limiter"`
	Operations []Operation `json:"operations"`
}

// Has returns whether an option is enabled.
func (sequence *Sequence) Has(flag string) bool {
	return slices.Contains(sequence.Flags, flag)
}

// Operation is one operation of a sequence. The verb determines which fields are used.
type Operation struct {
	Verb   string      `json:"verb"`
	Thing  *Thing      `json:"thing"`
	Things []Thing     `json:"things"`
	Batch  []Operation `json:"batch"`
	Text   string      `json:"text"`
	Index  string      `json:"index"`
	Number int64       `json:"number"`
}

// Answer is the result of an operation: a text, a Set, or nil if this version does not support the operation.
type Answer any

// Set is an answer whose order is that of a Go map, so it is compared in any order.
type Set []string

// Component runs a sequence and returns one answer per operation.
type Component func(sequence *Sequence) []Answer

// Each returns a component that runs one operation at a time.
func Each(begin func(sequence *Sequence) func(operation *Operation) Answer) Component {
	return func(sequence *Sequence) []Answer {
		step := begin(sequence)
		answers := make([]Answer, len(sequence.Operations))
		for i := range sequence.Operations {
			answers[i] = step(&sequence.Operations[i])
		}
		return answers
	}
}

// Main reserves standard output for answers, and redirects other output of the test binary to standard error.
func Main(m *testing.M) {
	answers = os.Stdout
	os.Stdout = os.Stderr
	// Sequences run one at a time; the second thread is for the garbage collector.
	runtime.GOMAXPROCS(2)
	os.Exit(m.Run())
}

var (
	answers *os.File
	input   *bufio.Reader
	output  *bufio.Writer
	// Several goroutines of a component may send messages to the Rust process.
	talking sync.Mutex
)

// ask sends a message during a sequence, and reads the response of the Rust process.
func ask(asked, said any) {
	talking.Lock()
	defer talking.Unlock()
	write(asked)
	if err := output.Flush(); err != nil {
		panic(err)
	}
	line, err := input.ReadBytes('\n')
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(line, said); err != nil {
		panic(err)
	}
}

// tell sends a message that has no response.
func tell(told any) {
	talking.Lock()
	defer talking.Unlock()
	write(told)
}

func write(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	// Flush returns the error of a failed write.
	output.Write(append(line, '\n'))
}

// Serve runs the sequences on standard input, in order, until it ends.
func Serve(t *testing.T, components map[string]Component) {
	input = bufio.NewReaderSize(os.Stdin, 1<<16)
	output = bufio.NewWriterSize(answers, 1<<16)
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			// Exits without the final output of the test binary.
			os.Exit(0)
		}
		if err != nil {
			t.Fatal(err)
		}
		write(carryOut(t, components, line))
		// Flushes when no further sequence is buffered, because the Rust process then waits for this answer.
		if input.Buffered() == 0 {
			if err := output.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func carryOut(t *testing.T, components map[string]Component, line []byte) (answers []Answer) {
	var sequence Sequence
	if err := json.Unmarshal(line, &sequence); err != nil {
		t.Fatal(err)
	}
	component := components[sequence.Component]
	if component == nil {
		t.Fatalf("no component %q", sequence.Component)
	}
	synctest.Test(t, func(*testing.T) { answers = component(&sequence) })
	return answers
}

// Unknown panics. Every drawn verb must be implemented on both sides.
func Unknown(operation *Operation) Answer {
	panic(fmt.Sprintf("unknown verb %q", operation.Verb))
}

// ShowBool formats a boolean as yes or no.
func ShowBool(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// ShowError formats whether an operation failed. The error text is left out, because it differs between the
// implementations.
func ShowError(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
