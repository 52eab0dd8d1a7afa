// Commands for the source: send events, end all watches, expire revisions.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// source is the neutral source at an address. It shares no connections with the measured client.
// Without an address it is a real server: the parent process changes its objects when this program prints
// ready.
type source struct {
	server string
	client *http.Client
}

func newSource(server string) source {
	transport := &http.Transport{DisableKeepAlives: true}
	return source{strings.TrimRight(server, "/"), &http.Client{Transport: transport}}
}

// real returns whether the source is a real server.
func (s source) real() bool {
	return s.server == ""
}

// synced reports to the parent process that the first list has been delivered. It does nothing for the
// neutral source.
func (s source) synced() {
	if s.real() {
		fmt.Println("synced")
	}
}

// emit requests events for open watches. It returns when the neutral source has sent the last event, or
// immediately for a real server.
func (s source) emit(events, rate int64) error {
	if s.real() {
		fmt.Println("ready")
		return nil
	}
	return s.post(fmt.Sprintf("/emit?n=%d&rate=%d", events, rate))
}

// expire ends all watches and expires the revision: the next watch that resumes from an old revision receives
// 410.
func (s source) expire() error {
	if err := s.post("/expire"); err != nil {
		return err
	}
	return s.post("/cut")
}

// watches returns the number of watches that the source has accepted.
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
