package controller

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "github.com/kube-informer/kube-informer/verify/clients/kubebuilder/api/v1"
)

// The suite is what `kubebuilder create api` writes, with a manager. The executables are those in the folder that
// KUBEBUILDER_ASSETS names.

var (
	ctx       context.Context
	cancel    context.CancelFunc
	testEnv   *envtest.Environment
	cfg       *rest.Config
	k8sClient client.Client
	cleaned   sync.Map
	stopped   = make(chan struct{})
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	ctx, cancel = context.WithCancel(context.Background())

	var err error
	err = webv1.AddToScheme(scheme.Scheme)
	Expect(err).NotTo(HaveOccurred())

	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}

	began := time.Now()
	cfg, err = testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	Expect(cfg).NotTo(BeNil())
	GinkgoLogr.Info("started", "after", time.Since(began))
	AddReportEntry("start to first test", time.Since(began).Round(time.Millisecond).String())

	k8sClient, err = client.New(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8sClient).NotTo(BeNil())

	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "mirror.example.com",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	Expect(err).NotTo(HaveOccurred())
	reconciler := &MirrorReconciler{
		Client: manager.GetClient(), Scheme: manager.GetScheme(),
		Cleanup: func(name string) { cleaned.Store(name, true) },
	}
	Expect(reconciler.SetupWithManager(manager)).To(Succeed())
	go func() {
		defer GinkgoRecover()
		defer close(stopped)
		Expect(manager.Start(ctx)).To(Succeed())
	}()
	Eventually(manager.Elected(), "10s").Should(BeClosed())
})

var _ = AfterSuite(func() {
	cancel()
	Eventually(stopped, "10s").Should(BeClosed())
	Expect(testEnv.Stop()).To(Succeed())
})
