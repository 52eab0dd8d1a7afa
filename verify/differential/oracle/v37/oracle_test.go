// The oracle on client-go 0.37.
package v37

import (
	"testing"

	"github.com/kube-informer/kube-informer/verify/differential/oracle/frame"
)

func TestMain(m *testing.M) {
	frame.Transact = transact
	frame.Main(m)
}

func TestOracle(t *testing.T) {
	components := frame.Components()
	components["in_order"] = frame.Each(realFIFO)
	frame.Serve(t, components)
}
