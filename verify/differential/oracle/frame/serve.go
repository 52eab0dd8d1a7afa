// Package frame asks client-go: it reads sequences of operations, carries each out inside a bubble of
// virtual time, and writes what every operation gave.
//
// What every version of client-go has stands here. The modules beside it choose the version, and add
// what only that one has.
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

// Has tells whether an option is on.
func (sequence *Sequence) Has(flag string) bool {
	return slices.Contains(sequence.Flags, flag)
}

// Operation is one step of a sequence. Which fields it has depends on its verb.
type Operation struct {
	Verb   string      `json:"verb"`
	Thing  *Thing      `json:"thing"`
	Things []Thing     `json:"things"`
	Batch  []Operation `json:"batch"`
	Text   string      `json:"text"`
	Index  string      `json:"index"`
	Number int64       `json:"number"`
}

// Answer is what one operation gave: a text, a Set, or nil where this version can't be asked.
type Answer any

// Set is an answer whose order comes from the order of a Go map.
type Set []string

// Component carries out a sequence, and gives an answer per operation.
type Component func(sequence *Sequence) []Answer

// Each makes a component whose operations are carried out one by one.
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

// Main keeps standard output for answers, whatever the test binary has to say.
func Main(m *testing.M) {
	answers = os.Stdout
	os.Stdout = os.Stderr
	// One sequence is carried out after the other; a second thread is for the garbage collector.
	runtime.GOMAXPROCS(2)
	os.Exit(m.Run())
}

var (
	answers *os.File
	input   *bufio.Reader
	output  *bufio.Writer
	// Components that ask the other process may do so from several goroutines.
	talking sync.Mutex
)

// ask sends something in the midst of a sequence, and reads what the other process says to it.
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

// tell sends something to which nothing is said.
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
	// Errors come back from Flush.
	output.Write(append(line, '\n'))
}

// Serve answers all lines of standard input, in order, until it ends.
func Serve(t *testing.T, components map[string]Component) {
	input = bufio.NewReaderSize(os.Stdin, 1<<16)
	output = bufio.NewWriterSize(answers, 1<<16)
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			// Without what a test binary says at its end.
			os.Exit(0)
		}
		if err != nil {
			t.Fatal(err)
		}
		write(carryOut(t, components, line))
		// Whoever sends many lines reads many answers; the last one must not stay here.
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

// Unknown ends the process: a verb that is drawn on one side must be known on the other.
func Unknown(operation *Operation) Answer {
	panic(fmt.Sprintf("unknown verb %q", operation.Verb))
}

// ShowBool writes yes or no.
func ShowBool(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// ShowError writes whether something failed; the words differ from one implementation to the other.
func ShowError(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
