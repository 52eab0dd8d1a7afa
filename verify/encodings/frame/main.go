// Package frame draws random objects of the built-in kinds, and writes each of them in protobuf and in JSON.
//
// Both encodings are those of the Go types and of the protobuf serializer of the linked Kubernetes version.
package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Main writes one line per object.
//
// If the first argument is "bodies", a line has a JSON body of a request, with values that do not belong there, and
// what a server makes of it: writeBody has the columns. Otherwise a line has one object in both encodings, with tabs between the columns: apiVersion/Kind, the object in protobuf,
// the object in JSON, and in protobuf the object that a program reads from this JSON. Protobuf is written in
// hexadecimal digits. The last column differs if JSON does not distinguish two objects.
//
// The other arguments of the program are the first seed, the number of objects, and the kinds. Object i has the
// seed "first seed plus i", and its kind is the next one of the list. Kinds that the version does not have
// are left out.
func Main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	write := write
	if len(args) > 0 && args[0] == "bodies" {
		write, args = writeBody, args[1:]
	}
	if len(args) < 3 {
		return fmt.Errorf("arguments: [bodies] FIRST-SEED COUNT KIND…")
	}
	first, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	count, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	types := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	var kinds []schema.GroupVersionKind
	for _, arg := range args[2:] {
		slash := strings.LastIndex(arg, "/")
		kind := schema.FromAPIVersionAndKind(arg[:slash], arg[slash+1:])
		if types.Recognizes(kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return fmt.Errorf("no known kind")
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	serializer := protobuf.NewSerializer(types, types)
	for seed := first; seed < first+count; seed++ {
		kind := kinds[seed%uint64(len(kinds))]
		if err := write(out, types, serializer, kind, seed); err != nil {
			return fmt.Errorf("%s, seed %d: %w", kind, seed, err)
		}
	}
	return nil
}

func write(out *bufio.Writer, types *runtime.Scheme, serializer runtime.Serializer, kind schema.GroupVersionKind, seed uint64) error {
	drawn, err := types.New(kind)
	if err != nil {
		return err
	}
	draw := draw{rand.New(rand.NewPCG(seed, 1))}
	draw.fill(reflect.ValueOf(drawn).Elem(), 0)
	drawn.GetObjectKind().SetGroupVersionKind(kind)
	// Protobuf does not distinguish all values of a Go type, such as an empty list and none. What is written
	// is the object that a client receives.
	var wire bytes.Buffer
	if err := serializer.Encode(drawn, &wire); err != nil {
		return err
	}
	received, _, err := serializer.Decode(wire.Bytes(), nil, nil)
	if err != nil {
		return err
	}
	wire.Reset()
	received.GetObjectKind().SetGroupVersionKind(kind)
	if err := serializer.Encode(received, &wire); err != nil {
		return err
	}
	text, err := json.Marshal(received)
	if err != nil {
		return err
	}
	read, err := types.New(kind)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, read); err != nil {
		return err
	}
	var again bytes.Buffer
	if err := serializer.Encode(read, &again); err != nil {
		return err
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	_, err = fmt.Fprintf(out, "%s/%s\t%x\t%s\t%x\n", apiVersion, name, wire.Bytes(), text, again.Bytes())
	return err
}
