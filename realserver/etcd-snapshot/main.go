// Saves a snapshot of etcd and restores it, with the code of etcdctl and etcdutl.
//
//	etcd-snapshot save ENDPOINT FILE
//	etcd-snapshot restore FILE FOLDER BUMP
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// The name and the peer address of the only member. A started member reads both from its data.
const (
	name = "default"
	peer = "http://localhost:2380"
)

// Maximum time for a snapshot. That of a run of the soak takes less than a second.
const saveMax = time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	manager := snapshot.NewV3(zap.NewNop())
	switch {
	case len(arguments) == 3 && arguments[0] == "save":
		endpoints := clientv3.Config{Endpoints: arguments[1:2]}
		ctx, cancel := context.WithTimeout(context.Background(), saveMax)
		defer cancel()
		_, err := manager.Save(ctx, endpoints, arguments[2])
		return err
	case len(arguments) == 4 && arguments[0] == "restore":
		bump, err := strconv.ParseUint(arguments[3], 10, 64)
		if err != nil {
			return err
		}
		// etcdutl requires --mark-compacted if, and only if, --bump-revision is not zero.
		return manager.Restore(snapshot.RestoreConfig{
			SnapshotPath:        arguments[1],
			Name:                name,
			OutputDataDir:       arguments[2],
			PeerURLs:            []string{peer},
			InitialCluster:      name + "=" + peer,
			InitialClusterToken: "etcd-cluster",
			RevisionBump:        bump,
			MarkCompacted:       bump > 0,
		})
	}
	return fmt.Errorf("usage: etcd-snapshot save ENDPOINT FILE | restore FILE FOLDER BUMP")
}
