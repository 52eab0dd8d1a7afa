// Package v1 contains the types of the group web.example.com.
// +kubebuilder:object:generate=true
// +groupName=web.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the types of this package.
	GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1"}

	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Mirror{}, &MirrorList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
