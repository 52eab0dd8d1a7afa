// The server of each test: the embedded server as a child process that accepts fault plans, or a real
// kube-apiserver (real_test.go).
//
// A child process ends when its standard input is closed, so it ends with the process of the test.

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
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// patience is the timeout of every wait in a test. Expected results take at most 3 s.
var patience = 30 * time.Second

// server is the API server of a test.
type server struct {
	t *testing.T
	api
}

// api contains what differs between the embedded server and a real one.
type api interface {
	// connection returns the address and the credentials.
	connection() *rest.Config
	// inject adds a fault plan. Its statements take effect in order, before this returns.
	inject(plan string)
	// clear removes all faults.
	clear()
	// log returns the requests since the last call, in order.
	log() []request
	// wrote is called after each write of one configmap, so that rank can count the writes.
	wrote()
	// rank returns the revision of the embedded server that corresponds to a revision: the number of the
	// test's writes up to it, plus one. It returns other text unchanged.
	rank(revision string) string
	// at returns the revision of a rank.
	at(rank int) string
}

// embedded is the embedded server, with the pipe that returns its requests and the client that adds its faults.
type embedded struct {
	t        *testing.T
	url      string
	http     *http.Client
	commands io.Writer
	answers  *bufio.Reader
}

// request is one line of a request log.
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
	if kubeconfig := os.Getenv("REAL_KUBECONFIG"); kubeconfig != "" {
		return &server{t, connectToReal(t, kubeconfig)}
	}
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
	e := &embedded{t: t, http: planter, commands: commands, answers: bufio.NewReader(output)}
	e.url = e.line()
	return &server{t, e}
}

func (e *embedded) line() string {
	e.t.Helper()
	line, err := e.answers.ReadString('\n')
	must(e.t, err)
	return strings.TrimSuffix(line, "\n")
}

func (e *embedded) connection() *rest.Config {
	return &rest.Config{Host: e.url}
}

func (e *embedded) inject(plan string) {
	e.t.Helper()
	answer, err := e.http.Post(e.url+"/faults", "text/plain", strings.NewReader(plan))
	must(e.t, err)
	defer answer.Body.Close()
	// The body is read to its end, so that the connection is kept: the server serves it while it refuses new
	// ones.
	text, err := io.ReadAll(answer.Body)
	must(e.t, err)
	if answer.StatusCode != http.StatusOK {
		e.t.Fatalf("%s: %s", plan, text)
	}
}

func (e *embedded) clear() {
	e.t.Helper()
	request, err := http.NewRequestWithContext(e.t.Context(), http.MethodDelete, e.url+"/faults", nil)
	must(e.t, err)
	answer, err := e.http.Do(request)
	must(e.t, err)
	must(e.t, answer.Body.Close())
}

func (e *embedded) log() []request {
	e.t.Helper()
	var all []request
	_, err := fmt.Fprintln(e.commands, "requests")
	must(e.t, err)
	must(e.t, json.Unmarshal([]byte(e.line()), &all))
	return all
}

// The first write to the embedded server has revision 2, and each write increases the revision by one.
func (e *embedded) wrote() {}

func (e *embedded) rank(revision string) string { return revision }

func (e *embedded) at(rank int) string { return strconv.Itoa(rank) }

// requests returns the lists and watches of a resource since the last call.
func (s *server) requests(resource string) []string {
	s.t.Helper()
	lines := []string{}
	for _, r := range s.log() {
		if r.Resource == resource && (r.Verb == "list" || r.Verb == "watch") {
			r.ResourceVersion = s.rank(r.ResourceVersion)
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
	config := s.connection()
	config.ContentConfig = content
	// The default limit of 5 requests per second would slow down the tests.
	config.QPS = -1
	config.UserAgent = "judge"
	return config
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
