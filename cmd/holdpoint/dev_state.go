package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// demoState is what the demo's agent and tool know, and a restart with --data must not forget: another key or another run at each
// start would bury what one looks for, and a tool that forgot its idempotency keys would do twice what it was asked twice.
type demoState struct {
	path string // "": not kept
	log  *slog.Logger

	mu   sync.Mutex
	kept demoKept
}

type demoKept struct {
	Key      string            `json:"key"`     // the agent's; it opens a demo on this machine
	Started  bool              `json:"started"` // the first run was taken
	Requests int               `json:"requests"`
	Effects  int               `json:"effects"`
	Last     string            `json:"last"`
	Answers  map[string]string `json:"answers"` // by idempotency key
	Runs     []demoRun         `json:"runs"`
	Seen     []string          `json:"seen"` // webhook ids, the newest last
}

// openDemoState reads what an earlier start kept in dir; "" keeps nothing.
func openDemoState(dir string, log *slog.Logger) (*demoState, error) {
	s := &demoState{log: log, kept: demoKept{Answers: map[string]string{}}}
	if dir == "" {
		return s, nil
	}
	s.path = filepath.Join(dir, "demo.json")
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("what the demo kept: %s: %w (remove the file to forget it)", s.path, err)
	}
	if s.kept.Answers == nil {
		s.kept.Answers = map[string]string{}
	}
	return s, nil
}

// do reads or changes the state, and keeps it when f says that it changed: on the disk before anything is answered.
func (s *demoState) do(f func(*demoKept) (changed bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f(&s.kept) || s.path == "" {
		return
	}
	data, err := json.Marshal(s.kept)
	if err == nil {
		if err = os.WriteFile(s.path+".new", data, 0o600); err == nil {
			err = os.Rename(s.path+".new", s.path)
		}
	}
	if err != nil {
		s.log.Warn("the demo's state could not be kept", "error", err)
	}
}
