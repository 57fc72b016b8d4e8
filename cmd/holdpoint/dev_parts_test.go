package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/holdpoint/holdpoint/worker"
)

// A start removes what a killed one left, and nothing of one that lives or of anybody else.
func TestKilledDevLeavesNoFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	live, remove, err := tempFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	killed, release, err := tempFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, "keyset.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A process that is killed gives up its lock and removes nothing.
	left := filepath.Join(base, tempPrefix+"left")
	if err := os.CopyFS(left, os.DirFS(killed)); err != nil {
		t.Fatal(err)
	}
	release()
	strange, unheld, old := filepath.Join(base, "other"), filepath.Join(base, tempPrefix+"coming"), filepath.Join(base, tempPrefix+"old")
	for _, dir := range []string{strange, unheld, old} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * comingUp)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	next, removeNext, err := tempFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{live: true, next: true, strange: true, unheld: true, left: false, old: false, killed: false} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
	remove()
	removeNext()
	if _, err := os.Stat(live); err == nil {
		t.Error("a folder outlives its start")
	}
}

// The demo's tool keeps its counter and its idempotency keys over a restart: the same key has no second effect (I13).
func TestDemoRemembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(dir string) (*demoTool, *demoState) {
		t.Helper()
		s, err := openDemoState(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return newDemoTool(s, func() {}), s
	}
	apply := func(tool *demoTool, key string) string {
		t.Helper()
		answer, err := tool.apply("releases", key, []byte(`{"release":"r1","environment":"staging"}`))
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	tool, s := open(dir)
	first := apply(tool, "op_1")
	s.do(func(k *demoKept) bool { k.Key, k.Started = "hp_x", true; return true })
	tool, s = open(dir)
	if again := apply(tool, "op_1"); again != first {
		t.Errorf("the same key gives %s, then %s", first, again)
	}
	apply(tool, "op_2")
	if effects, requests, last := tool.counts(); effects != 2 || requests != 3 || last != "deployed r1 to staging" {
		t.Errorf("%d effects of %d requests, %q", effects, requests, last)
	}
	s.do(func(k *demoKept) bool {
		if k.Key != "hp_x" || !k.Started {
			t.Errorf("forgotten: %+v", k)
		}
		return false
	})
	if info, err := os.Stat(filepath.Join(dir, "demo.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the key: %v %v", info, err)
	}
	tool, _ = open("")
	apply(tool, "op_1")
	tool, _ = open("")
	if effects, _, _ := tool.counts(); effects != 0 {
		t.Error("kept without --data")
	}
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openDemoState(dir, nil); err == nil || !strings.Contains(err.Error(), "demo.json") {
		t.Errorf("a broken file: %v", err)
	}
}

// Asynq looks into empty queues all the time: Redis is not asked for it, and a task is found as soon as there is one.
func TestEmptyQueuesAreNotAskedFor(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	var looks atomic.Int64
	enough := make(chan struct{})
	client, err := worker.OpenRedis("redis://" + r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(emptyQueues{func(key string) bool {
		if looks.Add(1) == 200 {
			close(enough)
		}
		return r.Exists(key)
	}})
	server := asynq.NewServerFromRedisClient(client, asynq.Config{Queues: map[string]int{"a": 1, "b": 1}, TaskCheckInterval: time.Millisecond, LogLevel: asynq.FatalLevel})
	ran := make(chan string, 1)
	if err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error { ran <- task.Type(); return nil })); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	wait := func(c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatal("nobody looks into the queues")
		}
	}
	wait(enough)
	if n := r.CommandCount(); n > 60 { // what its heartbeat and its schedulers say
		t.Errorf("Redis was asked %d times by an idle server", n)
	}
	other := asynq.NewClientFromRedisClient(client)
	if _, err := other.Enqueue(asynq.NewTask("job", nil), asynq.Queue("b")); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-ran:
		if got != "job" {
			t.Error(got)
		}
	case <-time.After(patience):
		t.Fatal("the task was not found")
	}
}
