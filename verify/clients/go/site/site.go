// Package site has a custom kind and its controller, written as users of controller-runtime write them.
//
// A site has a page, which the controller writes into a config map of the same name.
package site

import (
	_ "embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Site is a custom object.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

// Spec is what the user of a site wants.
type Spec struct {
	Page string `json:"page"`
	// Replicas is 1 by default.
	Replicas *int32 `json:"replicas,omitempty"`
	// Tier is small by default.
	Tier string `json:"tier,omitempty"`
}

// Status is what the controller has done.
type Status struct {
	Replicas   int32              `json:"replicas,omitempty"`
	Selector   string             `json:"selector,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is a list of sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// Ready is the condition of a site whose config map has its page.
const Ready = "Ready"

// Tier is the path of the selectable field.
const Tier = "spec.tier"

var (
	// Version is the group and the version of sites.
	Version = schema.GroupVersion{Group: "example.org", Version: "v1"}
	// Resource is the resource of sites.
	Resource = Version.WithResource("sites")
)

//go:embed definition.yaml
var definition []byte

// Definition returns the definition of the kind.
func Definition() *apiextensionsv1.CustomResourceDefinition {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &d); err != nil {
		panic(err)
	}
	return &d
}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Version, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, Version)
	return nil
}

// DeepCopy returns a copy that shares nothing.
func (s *Site) DeepCopy() *Site {
	copied := *s
	copied.ObjectMeta = *s.ObjectMeta.DeepCopy()
	if s.Spec.Replicas != nil {
		copied.Spec.Replicas = new(*s.Spec.Replicas)
	}
	copied.Status.Conditions = nil
	for _, condition := range s.Status.Conditions {
		copied.Status.Conditions = append(copied.Status.Conditions, *condition.DeepCopy())
	}
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	copied := &SiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, s := range l.Items {
		copied.Items = append(copied.Items, *s.DeepCopy())
	}
	return copied
}
