// Telling the source what to do: events, the end of all watches, an expired revision.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// source is the neutral source at an address; its connections are not those of the client that is measured.
// Without an address it is a real server: who started this program changes its objects, and reads from standard output when.
type source struct {
	server string
	client *http.Client
}

func newSource(server string) source {
	transport := &http.Transport{DisableKeepAlives: true}
	return source{strings.TrimRight(server, "/"), &http.Client{Transport: transport}}
}

// real says whether the objects are those of a real server.
func (s source) real() bool {
	return s.server == ""
}

// synced reports that the first list has been delivered.
func (s source) synced() {
	if s.real() {
		fmt.Println("synced")
	}
}

// emit requests so many events for open watches. The neutral source has sent the last when this returns; for a real server it returns at once.
func (s source) emit(events, rate int64) error {
	if s.real() {
		fmt.Println("ready")
		return nil
	}
	return s.post(fmt.Sprintf("/emit?n=%d&rate=%d", events, rate))
}

// expire ends all watches, and lets the next one that goes on from an old revision find it expired.
func (s source) expire() error {
	if err := s.post("/expire"); err != nil {
		return err
	}
	return s.post("/cut")
}

// watches is how many watches it has accepted so far.
func (s source) watches() (int64, error) {
	answer, err := s.client.Get(s.server + "/stats")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var stats struct{ Watches *int64 }
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("/stats: %w", err)
	}
	if stats.Watches == nil {
		return 0, errors.New("/stats has no watches")
	}
	return *stats.Watches, nil
}

func (s source) post(path string) error {
	answer, err := s.client.Post(s.server+path, "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s%s: %s", s.server, path, answer.Status)
	}
	return nil
}
