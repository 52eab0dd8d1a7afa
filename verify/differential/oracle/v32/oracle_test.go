// The oracle on client-go 0.32, the last version whose informers use only DeltaFIFO.
package v32

import (
	"testing"

	"github.com/kube-informer/kube-informer/verify/differential/oracle/frame"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) {
	frame.Requeue = func() error { return cache.ErrRequeue{} }
	frame.Main(m)
}

func TestOracle(t *testing.T) {
	frame.Serve(t, frame.Components())
}
