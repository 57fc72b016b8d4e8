// Command sink is the world that effects happen in, for the tests of worker/proof: a tool's server and an agent's webhook.
//
// It shares no code with what is tested, and no process. Every request that arrives is a line of an append-only file, in the order
// of arrival, before anything is answered; an effect is a line of its own. Nothing is deduplicated in that file: two lines are two.
//
//	POST /idempotent      one effect for each Idempotency-Key; a known key gets the first answer again
//	POST /queryable       an effect each time; GET /queryable/{key} says whether one happened under the key
//	POST /opaque          an effect each time, and no way to ask
//	POST /hook            an agent's webhook
//
// How it behaves, the request says: the body is {"op": "…", "plan": "a,b,c"}, and the n-th request of an op follows the n-th step,
// later ones the last. See the steps in plan.go. A webhook's steps stand behind a tilde in its run's id.
//
// It ends when its standard input does, so that it never outlives the test.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "sink:", err)
		os.Exit(1)
	}
}

func run() error {
	path := flag.String("log", "", "the append-only file")
	flag.Parse()
	log, err := os.OpenFile(*path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := newServer(log)
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	if _, err := fmt.Println("http://" + listener.Addr().String()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
