// client-go as a measured process: a shared index informer over pods, with one handler.
//
// It has the flags of the Rust programs, without `--list pages` and with --encoding, and prints the same line
// of JSON; bench/README.md defines its fields.
// Go's runtime has its default settings; GOGC and GOMAXPROCS are those of the environment.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 {
		switch arguments[0] {
		case "reads":
			return reads(arguments[1:])
		case "queue":
			return queue(arguments[1:])
		case "fan-out":
			return fanOut(arguments[1:])
		}
	}
	options, err := parse(arguments)
	if err != nil {
		return err
	}
	return observe(options)
}

// options are the flags of a run with an informer.
type options struct {
	server     string
	kubeconfig string
	encoding   string
	prune      bool
	list       string
	handler    string
	events     int64
	rate       int64
	relist     int64
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("client-go", flag.ContinueOnError)
	flags.StringVar(&o.server, "server", "", "`URL` of the neutral source")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of a real server; the parent process changes objects after this program prints ready")
	flags.StringVar(&o.encoding, "encoding", "protobuf", "protobuf or json")
	flags.Func("prune", "true or false: drop managedFields with a transform (default true)", func(value string) error {
		o.prune = value == "true"
		return oneOf(value, "true", "false")
	})
	flags.StringVar(&o.list, "list", "streaming", "streaming or whole")
	flags.StringVar(&o.handler, "handler", "objects", "objects or keys")
	flags.Int64Var(&o.events, "events", 0, "number of events in the watch phase")
	flags.Int64Var(&o.rate, "rate", 0, "events per second; 0 sends them as fast as the program reads")
	flags.Int64Var(&o.relist, "relist", 0, "number of relists")
	o.prune = true
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if o.kubeconfig != "" && (o.server != "" || o.relist > 0) {
		return o, errors.New("--server and --relist need the neutral source, which --kubeconfig excludes")
	}
	for _, err := range []error{
		oneOf(o.encoding, "protobuf", "json"),
		oneOf(o.list, "streaming", "whole"),
		oneOf(o.handler, "objects", "keys"),
	} {
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func oneOf(value string, known ...string) error {
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %v", value, known)
}

// say prints a line of JSON.
func say(line any) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}
