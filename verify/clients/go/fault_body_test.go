// Tests of faults that affect the bytes of a body, as client-go reads them.

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// body returns the body of a list, or of a watch if the options request one.
func (s stage) body(options metav1.ListOptions) io.ReadCloser {
	t := s.server.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := s.request("GET").VersionedParams(&options, scheme.ParameterCodec).Stream(ctx)
	must(t, err)
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

// read reads a body to its end. It returns the text, and `ended`, `broken` or another error.
func (s stage) read(options metav1.ListOptions) (string, string) {
	s.server.t.Helper()
	text, err := io.ReadAll(s.body(options))
	switch {
	case err == nil:
		return string(text), "ended"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return string(text), "broken"
	default:
		return string(text), err.Error()
	}
}

// listed returns the names in the text of a list.
func listed(t *testing.T, text string) string {
	t.Helper()
	var list corev1.ConfigMapList
	must(t, json.Unmarshal([]byte(text), &list))
	return names(t, &list)
}

func TestFaultsOfBodies(t *testing.T) {
	// ends reads a list that is incomplete.
	ends := func(length int, how, typed string) func(s stage) {
		return func(s stage) {
			t := s.server.t
			text, ended := s.read(metav1.ListOptions{})
			equal(t, "length and end", fmt.Sprint(len(text), " ", ended), fmt.Sprint(length, " ", how))
			_, err := s.configmaps.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			said(t, refusal(err), typed)
		}
	}
	// begins reads the two events of a watch that precede its end.
	begins := func(how string) func(s stage) {
		return func(s stage) {
			t := s.server.t
			text, ended := s.read(*asWatch(fromTheStart()))
			equal(t, "lines and end", fmt.Sprint(strings.Count(text, "\n"), " ", ended), "2 "+how)
		}
	}
	show(t, []row{
		{plan: `list configmaps: cut`, see: ends(0, "ended", "…")},
		{plan: `list configmaps: cut after 100 bytes`, see: ends(100, "ended", "…")},
		{plan: `list configmaps: break after 100 bytes`, see: ends(100, "broken", "…")},
		{plan: `watch configmaps: cut after 2 events`, see: begins("ended")},
		{plan: `watch configmaps: break after 2 events`, see: begins("broken")},
		{plan: `list configmaps: freeze after 100 bytes`, see: func(s stage) {
			t := s.server.t
			body := s.body(metav1.ListOptions{})
			start := make([]byte, 100)
			_, err := io.ReadFull(body, start)
			must(t, err)
			rest := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(body)
				rest <- string(text)
			}()
			select {
			case <-rest:
				t.Fatal("not silent")
			case <-time.After(quiet):
			}
			s.clear()
			equal(t, "names", listed(t, string(start)+<-rest), "[a b c d]")
		}},
	})
}

func TestFaultThatBreaksAWatchIsAnUnexpectedEndOfItsBody(t *testing.T) {
	perform(t, []row{{plan: `break watch configmaps`, see: func(s stage) {
		t := s.server.t
		body := s.body(*asWatch(metav1.ListOptions{ResourceVersion: "4", TimeoutSeconds: &deadline}))
		lines := bufio.NewReader(body)
		_, err := lines.ReadString('\n')
		must(t, err)
		s.plant()
		_, err = io.ReadAll(lines)
		equal(t, "end", err, io.ErrUnexpectedEOF)
	}}}, nil)
}

// wire is a connection that records the received bytes.
type wire struct {
	net.Conn
	lock sync.Mutex
	came bytes.Buffer
}

func (w *wire) Read(into []byte) (int, error) {
	n, err := w.Conn.Read(into)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.came.Write(into[:n])
	return n, err
}

// chunks returns the lengths of the chunks of the only response that was received.
func (w *wire) chunks(t *testing.T) []int {
	t.Helper()
	w.lock.Lock()
	defer w.lock.Unlock()
	head, body, _ := strings.Cut(w.came.String(), "\r\n\r\n")
	if !strings.Contains(strings.ToLower(head), "transfer-encoding: chunked") {
		return []int{len(body)}
	}
	lengths := []int{}
	for {
		var length int
		line, rest, _ := strings.Cut(body, "\r\n")
		_, err := fmt.Sscanf(line, "%x", &length)
		must(t, err)
		if length == 0 {
			return lengths
		}
		lengths = append(lengths, length)
		body = rest[length+len("\r\n"):]
	}
}

// wired returns the stage with a client whose only connection is recorded.
func (s stage) wired() (stage, *wire) {
	t := s.server.t
	t.Helper()
	kept := &wire{}
	config := s.config()
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		kept.Conn = conn
		return kept, err
	}
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	s.configmaps.client = client
	return s, kept
}

func TestFaultsThatSplitABodyKeepItsBytes(t *testing.T) {
	// split reads a list, checks that it is complete, and checks its chunks with judge.
	split := func(judge func(t *testing.T, chunks []int)) func(s stage) {
		return func(s stage) {
			t := s.server.t
			wired, wire := s.wired()
			text, _ := wired.read(metav1.ListOptions{})
			equal(t, "names", listed(t, text), "[a b c d]")
			judge(t, wire.chunks(t))
		}
	}
	show(t, []row{
		{plan: `list configmaps: split every 100 bytes`, see: split(func(t *testing.T, chunks []int) {
			if len(chunks) < 5 {
				t.Fatalf("few chunks: %v", chunks)
			}
			for _, length := range chunks[:len(chunks)-1] {
				equal(t, "chunk", length, 100)
			}
		})},
		{plan: `list configmaps: split at 5,20`, see: split(func(t *testing.T, chunks []int) {
			equal(t, "count of chunks", len(chunks), 3)
			equal(t, "chunks", chunks[:2], []int{5, 15})
		})},
		{plan: `list configmaps: split randomly`, see: split(func(t *testing.T, chunks []int) {
			lengths := map[int]bool{}
			for _, length := range chunks {
				lengths[length] = true
				if length > 64 {
					t.Fatalf("a chunk of %d bytes", length)
				}
			}
			if len(lengths) < 5 {
				t.Fatalf("hardly random: %v", chunks)
			}
		})},
		{plan: `watch configmaps: split every 7 bytes`, see: func(s stage) {
			t := s.server.t
			wired, wire := s.wired()
			watchTells("ADDED a 2", "ADDED b 3", "ADDED c 4", "ADDED d 5")(wired)
			for _, length := range wire.chunks(t) {
				if length > 7 {
					t.Fatalf("a chunk of %d bytes", length)
				}
			}
		}},
	})
}
