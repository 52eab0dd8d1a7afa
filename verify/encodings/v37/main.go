// Writes random objects as Kubernetes 1.37 encodes them.
package main

import "github.com/kube-informer/kube-informer/verify/encodings/frame"

func main() {
	frame.Main()
}
