// The manager of the Mirror controller.
package main

import (
	"os"

	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	webv1 "github.com/kube-informer/kube-informer/verify/clients/kubebuilder/api/v1"
	"github.com/kube-informer/kube-informer/verify/clients/kubebuilder/internal/controller"
)

func main() {
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("setup")
	if err := webv1.AddToScheme(scheme.Scheme); err != nil {
		log.Error(err, "unable to add the types")
		os.Exit(1)
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:           scheme.Scheme,
		LeaderElection:   true,
		LeaderElectionID: "mirror.example.com",
	})
	if err != nil {
		log.Error(err, "unable to create the manager")
		os.Exit(1)
	}
	reconciler := &controller.MirrorReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Cleanup: func(string) {},
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		log.Error(err, "unable to create the controller")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "the manager has ended")
		os.Exit(1)
	}
}
