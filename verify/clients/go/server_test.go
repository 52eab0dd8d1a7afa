// The server of each test: a child process that takes fault plans.
//
// A server ends when its standard input is closed, so it ends with the process of the test.

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

// patience is the timeout of every wait in a test. Expected results take at most 3 s.
var patience = 30 * time.Second

// server is an API server, with the pipe that returns its requests and the client that adds its faults.
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

// streaming returns whether informers of this process request streaming lists: the feature gate
// WatchListClient, which the environment sets.
func streaming() bool {
	return features.FeatureGates().Enabled(features.WatchListClient)
}

func start(t *testing.T) *server {
	t.Helper()
	path := os.Getenv("COMMANDED_SERVER")
	if path == "" {
		t.Fatal("COMMANDED_SERVER must name the built example commanded_server; verify/clients/run sets it")
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
			t.Errorf("the server failed: %v", err)
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

// inject adds a fault plan. Its statements take effect in order, before this returns.
func (s *server) inject(plan string) {
	s.t.Helper()
	answer, err := s.http.Post(s.url+"/faults", "text/plain", strings.NewReader(plan))
	must(s.t, err)
	defer answer.Body.Close()
	// The body is read to its end, so that the connection is kept: the server serves it while it refuses new
	// ones.
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", plan, text)
	}
}

// clear removes all faults.
func (s *server) clear() {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, s.url+"/faults", nil)
	must(s.t, err)
	answer, err := s.http.Do(request)
	must(s.t, err)
	must(s.t, answer.Body.Close())
}

// requests returns the lists and watches of a resource since the last call.
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

// awaitRequest waits for a request for configmaps, which may not have been answered yet, and drops earlier
// requests.
func (s *server) awaitRequest(wanted string) {
	s.t.Helper()
	isWanted := func(line string) bool { return line == wanted || line == wanted+" -> 0" }
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(s.requests("configmaps"), isWanted) {
			return
		}
	}
	s.t.Fatalf("no request %s", wanted)
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

// inProtobuf returns whether the clients of the tests send and accept protobuf, as controllers of Kubernetes do.
func inProtobuf() bool {
	return os.Getenv("TEST_ENCODING") == "protobuf"
}

// config returns the client configuration. Bodies are JSON unless inProtobuf; protobuf_test.go changes that.
func (s *server) config() *rest.Config {
	content := rest.ContentConfig{ContentType: "application/json"}
	if inProtobuf() {
		content = rest.ContentConfig{ContentType: protobufType, AcceptContentTypes: protobufType + ",application/json"}
	}
	return &rest.Config{
		Host:          s.url,
		ContentConfig: content,
		// The default limit of 5 requests per second would slow down the tests.
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
