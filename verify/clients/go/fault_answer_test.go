// Tests of faults that replace a response, or delay it.

package clients

import (
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// getting expects the error of a GET of configmap a without retries.
func getting(want string) func(s stage) {
	return func(s stage) {
		t := s.server.t
		t.Helper()
		said(t, refusal(s.request("GET").Name("a").Do(t.Context()).Error()), want)
	}
}

func TestFaultsOfAnswersAreErrorsOfClientGo(t *testing.T) {
	show(t, []row{
		{plan: `get configmaps: 400`, see: getting("400 BadRequest: the server rejected our request")},
		{plan: `get configmaps: 401`, see: getting("401 Unauthorized: Unauthorized")},
		{plan: `get configmaps: 403`, see: getting("403 Forbidden: forbidden")},
		{plan: `get configmaps: 404`, see: getting("404 NotFound: the server could not find the requested resource")},
		{plan: `get configmaps: 405`, see: getting("405 MethodNotAllowed: the server does not allow this method on the requested resource")},
		{plan: `get configmaps: 406`, see: getting("406 NotAcceptable: …")},
		{plan: `get configmaps: 409`, see: getting("409 Conflict: the server reported a conflict")},
		{plan: `get configmaps: 410`, see: getting("410 Expired: The resourceVersion for the provided list is too old.")},
		{plan: `get configmaps: 413`, see: getting("413 RequestEntityTooLarge: the request is too large")},
		{plan: `get configmaps: 415`, see: getting("415 UnsupportedMediaType: the body of the request was in an unknown format")},
		{plan: `get configmaps: 422`, see: getting("422 Invalid: …")},
		{plan: `get configmaps: 429`, see: getting("429 TooManyRequests: Too many requests, please try again later.")},
		{plan: `get configmaps: 429 retry-after=7`, see: getting("429 TooManyRequests: Too many requests, please try again later. (retry in 7 s)")},
		{plan: `get configmaps: 429 plain`, see: getting("429 TooManyRequests: … (retry in 1 s)")},
		{plan: `get configmaps: 429 plain retry-after=7`, see: getting("429 TooManyRequests: … (retry in 7 s)")},
		{plan: `get configmaps: 500`, see: getting("500 InternalError: Internal error occurred: injected by a fault")},
		{plan: `get configmaps: 503 retry-after=7`, see: getting("503 ServiceUnavailable: the server is currently unable to handle the request (retry in 7 s)")},
		{plan: `get configmaps: 504`, see: getting("504 Timeout: the server was unable to return a response in the time allotted")},
		{plan: `get configmaps: 504 too-large`, see: getting("504 Timeout: Timeout: Too large resource version: 6, current: 5 (too large)")},
		{plan: `get configmaps: 504 too-large retry-after=1`, see: getting("504 Timeout: …: 6, current: 5 (retry in 1 s) (too large)")},
		{plan: `get configmaps: 507`, see: getting("507 …")},
	})
}

func TestFaultsOfAnswersAffectOnlyTheNamedRequests(t *testing.T) {
	hits := func(verb, path, want string) func(s stage) {
		return func(s stage) {
			t := s.server.t
			said(t, refusal(s.request(verb).Name(path).Do(t.Context()).Error()), want)
		}
	}
	refused := "503 ServiceUnavailable: the server is currently unable to handle the request"
	both := func(scripts ...func(s stage)) func(s stage) {
		return func(s stage) {
			for _, script := range scripts {
				script(s)
			}
		}
	}
	a, b := hits("GET", "a", refused), hits("GET", "b", "no error")
	again := hits("GET", "a", "no error")
	show(t, []row{
		{plan: `get configmaps named a: 503`, see: both(a, b)},
		{plan: `* * in default: 503`, see: func(s stage) {
			a(s)
			_, err := s.configmaps.client.CoreV1().ConfigMaps("other").List(s.server.t.Context(), metav1.ListOptions{})
			must(s.server.t, err)
		}},
		{plan: `get configmaps from judge: 503`, see: func(s stage) {
			a(s)
			other := s.request("GET").Name("a").SetHeader("User-Agent", "another client")
			must(s.server.t, other.Do(s.server.t.Context()).Error())
		}},
		{plan: `get configmaps: 503 x2`, see: both(a, a, again)},
		{plan: `get configmaps: 503 skip=2 x1`, see: both(again, again, a, again)},
		// The same seed always affects the same requests.
		{plan: `seed 3; get configmaps: 503 chance=50%`, see: func(s stage) {
			told := ""
			for range 12 {
				if s.request("GET").Name("a").Do(s.server.t.Context()).Error() == nil {
					told += "."
				} else {
					told += "x"
				}
			}
			equal(s.server.t, "hits", told, "xx.x..xx...x")
		}},
	})
}

func TestFaultsBeforeAnAnswer(t *testing.T) {
	show(t, []row{
		// client-go waits for the time in Retry-After, and retries.
		{plan: `get configmaps: 429 retry-after=1 x1`, see: func(s stage) {
			t, asked := s.server.t, time.Now()
			must(t, s.request("GET").Name("a").MaxRetries(1).Do(t.Context()).Error())
			lasted(t, asked, time.Second)
		}},
		{plan: `create configmaps: 500 x1`, see: func(s stage) {
			t := s.server.t
			said(t, refusal(s.request("POST").Body(configmap("e")).Do(t.Context()).Error()), "500 InternalError: …")
			equal(t, "stored", s.stored(), "[a b c d]")
		}},
		{plan: `create configmaps: reset x1`, see: func(s stage) {
			t := s.server.t
			said(t, refusal(s.request("POST").Body(configmap("e")).Do(t.Context()).Error()), "…EOF")
			equal(t, "stored", s.stored(), "[a b c d]")
		}},
		{plan: `watch configmaps: refuse streaming`, see: func(s stage) {
			said(s.server.t, s.refused(streamed()), "422 Invalid: …: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
			s.open(fromTheStart()).expect("ADDED a 2")
		}},
		{plan: `create configmaps: delay answer 1s`, see: func(s stage) {
			t, asked := s.server.t, time.Now()
			answered := make(chan error, 1)
			go func() { answered <- s.request("POST").Body(configmap("e")).Do(t.Context()).Error() }()
			s.open(metav1.ListOptions{ResourceVersion: "5"}).expect("ADDED e 6")
			select {
			case err := <-answered:
				t.Fatalf("answered before the watch received the event: %v", err)
			default:
			}
			must(t, <-answered)
			lasted(t, asked, time.Second)
		}},
		{plan: `list configmaps: delay first byte 1s`, see: func(s stage) {
			t := s.server.t
			body, err := s.request("GET").Stream(t.Context())
			must(t, err)
			defer body.Close()
			begun := time.Now()
			_, err = body.Read(make([]byte, 1))
			must(t, err)
			// The headers may be read after the start of the delay.
			lasted(t, begun, time.Second/2)
			_, err = io.ReadAll(body)
			must(t, err)
		}},
		{plan: `watch configmaps: delay each event 300ms`, see: func(s stage) {
			t, asked := s.server.t, time.Now()
			w := s.open(metav1.ListOptions{ResourceVersion: "1"})
			for n, line := range []string{"ADDED a 2", "ADDED b 3", "ADDED c 4", "ADDED d 5"} {
				w.expect(line)
				lasted(t, asked, time.Duration(n+1)*300*time.Millisecond)
			}
		}},
	})
}
