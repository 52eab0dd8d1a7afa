package apply

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	group      = "example.com"
	kindName   = "Thing"
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// kind is a custom kind, as kube-apiserver serves it.
type kind struct {
	versions  map[string]bool
	converter managedfields.TypeConverter
}

// newKind reads the schemas of versions: the value of openAPIV3Schema, or nil.
func newKind(schemas map[string]any) *kind {
	models := metaModels()
	versions := map[string]bool{}
	for version, value := range schemas {
		models["com.example."+version+"."+kindName] = model(version, value)
		versions[group+"/"+version] = true
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		panic(err)
	}
	return &kind{versions: versions, converter: converter}
}

// metaModels returns the schemas of the types that custom kinds use.
func metaModels() map[string]*spec.Schema {
	models := map[string]*spec.Schema{}
	ref := func(name string) spec.Ref {
		return spec.MustCreateRef("#/components/schemas/" + name)
	}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		schema := definition.Schema
		models[name] = &schema
	}
	return models
}

// model returns the schema of a version as apiextensions' buildKubeNative makes it.
func model(version string, value any) *spec.Schema {
	result := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if value != nil {
		var outer apiextensionsv1.JSONSchemaProps
		text, err := json.Marshal(value)
		must(err)
		must(json.Unmarshal(text, &outer))
		var inner apiextensions.JSONSchemaProps
		must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&outer, &inner, nil))
		node, err := structural.NewStructural(&inner)
		must(err)
		result = node.Unfold().ToKubeOpenAPI()
		addMeta(result)
		addEmbedded(result)
	}
	result.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": group, "version": version, "kind": kindName},
	})
	return result
}

func addMeta(schema *spec.Schema) {
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}
	schema.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMeta))
	schema.SetProperty("apiVersion", text)
	schema.SetProperty("kind", text)
}

// addEmbedded adds the members of embedded objects.
func addEmbedded(schema *spec.Schema) {
	if schema == nil {
		return
	}
	for name, property := range schema.Properties {
		addEmbedded(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		addEmbedded(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		addEmbedded(schema.AdditionalProperties.Schema)
	}
	if embeds, ok := schema.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embeds {
		addMeta(schema)
	}
}

// fieldManager returns the field manager of a version and a subresource.
func (k *kind) fieldManager(version, subresource string, ignored []string) *managedfields.FieldManager {
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	for version := range k.versions {
		set := fieldpath.NewSet()
		for _, name := range ignored {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		reset[fieldpath.APIVersion(version)] = fieldpath.NewExcludeSetFilter(set)
	}
	gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kindName}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		k.converter, k, nothing{}, nothing{}, gvk, gvk.GroupVersion(), subresource, reset)
	must(err)
	return manager
}

// Convert, ConvertFieldLabel and ConvertToVersion convert as apiextensions' crConverter with the strategy None.
func (k *kind) Convert(in, out, context any) error {
	return fmt.Errorf("not used")
}

func (k *kind) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", fmt.Errorf("not used")
}

func (k *kind) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok {
		return nil, fmt.Errorf("%v is unstructured and is not suitable for converting to %q", from.String(), target)
	}
	if !k.versions[to.GroupVersion().String()] {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to.GroupVersion().String())
	}
	if !k.versions[from.GroupVersion().String()] {
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", from.GroupVersion().String())
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(to)
	return out, nil
}

// nothing sets no defaults, and creates empty objects.
type nothing struct{}

func (nothing) Default(runtime.Object) {}

func (nothing) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
