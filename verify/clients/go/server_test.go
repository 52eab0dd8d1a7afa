// What the tests talk to: one server for each test, a child of this process, that fails on command.
//
// A server ends with its standard input, so none is left behind, however a test ends.

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// patience is how long anything may take before a test gives up; what is waited for takes 3 s at most.
var patience = 30 * time.Second

// server is one API server, the pipe that asks for its requests, and the client that plants its faults.
type server struct {
	t        *testing.T
	url      string
	http     *http.Client
	commands io.Writer
	answers  *bufio.Reader
}

// request is one line of the server's request log.
type request struct {
	Verb                 string
	Resource             string
	Status               int
	ResourceVersion      string
	ResourceVersionMatch string
	Limit                int
	Continue             bool
	SendInitialEvents    bool
}

// streaming says whether informers of this process ask for streaming lists: the gate WatchListClient, set by the environment.
func streaming() bool {
	return features.FeatureGates().Enabled(features.WatchListClient)
}

func start(t *testing.T) *server {
	t.Helper()
	path := os.Getenv("COMMANDED_SERVER")
	if path == "" {
		t.Fatal("COMMANDED_SERVER must name the example commanded_server, built; verify/clients/run does that")
	}
	child := exec.Command(path)
	child.Stderr = os.Stderr
	commands, err := child.StdinPipe()
	must(t, err)
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() {
		_ = commands.Close()
		late := time.AfterFunc(patience, func() { _ = child.Process.Kill() })
		defer late.Stop()
		if err := child.Wait(); err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
	})
	planter := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(planter.CloseIdleConnections)
	s := &server{t: t, http: planter, commands: commands, answers: bufio.NewReader(output)}
	s.url = s.line()
	return s
}

func (s *server) line() string {
	s.t.Helper()
	line, err := s.answers.ReadString('\n')
	must(s.t, err)
	return strings.TrimSuffix(line, "\n")
}

// inject adds a fault plan, of which each action happens before the next statement is looked at.
func (s *server) inject(plan string) {
	s.t.Helper()
	answer, err := s.http.Post(s.url+"/faults", "text/plain", strings.NewReader(plan))
	must(s.t, err)
	defer answer.Body.Close()
	// Read to its end, so that the connection stays open: it is the one that is served while connections are refused.
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", plan, text)
	}
}

// clear takes all faults back.
func (s *server) clear() {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, s.url+"/faults", nil)
	must(s.t, err)
	answer, err := s.http.Do(request)
	must(s.t, err)
	must(s.t, answer.Body.Close())
}

// requests are those for a resource's collection since the last call.
func (s *server) requests(resource string) []string {
	s.t.Helper()
	var all []request
	_, err := fmt.Fprintln(s.commands, "requests")
	must(s.t, err)
	must(s.t, json.Unmarshal([]byte(s.line()), &all))
	lines := []string{}
	for _, r := range all {
		if r.Resource == resource && (r.Verb == "list" || r.Verb == "watch") {
			lines = append(lines, r.String())
		}
	}
	return lines
}

// awaitRequest waits for a request for configmaps, whose answer may still be on its way, and forgets those before it.
func (s *server) awaitRequest(wanted string) {
	s.t.Helper()
	isWanted := func(line string) bool { return line == wanted || line == wanted+" -> 0" }
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(s.requests("configmaps"), isWanted) {
			return
		}
	}
	s.t.Fatalf("nobody asks to %s", wanted)
}

func (r request) String() string {
	line := r.Verb
	if r.SendInitialEvents {
		line += " all"
	}
	if r.ResourceVersion != "" {
		line += " from " + r.ResourceVersion
	}
	if r.ResourceVersionMatch == "Exact" {
		line += " exactly"
	}
	if r.Continue {
		line += " continued"
	}
	if r.Status != 200 {
		line += fmt.Sprintf(" -> %d", r.Status)
	}
	return line
}

// config leads to the server; bodies are JSON, and those of protobuf_test.go are not.
func (s *server) config() *rest.Config {
	return &rest.Config{
		Host:          s.url,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		// The default of 5 requests a second would make tests slow.
		QPS:       -1,
		UserAgent: "judge",
	}
}

func (s *server) client() kubernetes.Interface {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(s.config())
	must(s.t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
