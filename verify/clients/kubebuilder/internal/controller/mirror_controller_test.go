package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	webv1 "github.com/kube-informer/kube-informer/verify/clients/kubebuilder/api/v1"
)

func mirror(name string) *webv1.Mirror {
	return &webv1.Mirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       webv1.MirrorSpec{Image: "nginx:1"},
	}
}

var _ = Describe("Mirror Controller", func() {
	It("gives a Mirror its Deployment, and reports when it is ready", func() {
		site := mirror("site")
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Expect(site.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "the default of the definition")
		key := client.ObjectKeyFromObject(site)
		deployment := &appsv1.Deployment{}
		Eventually(func() error { return k8sClient.Get(ctx, key, deployment) }, "10s").Should(Succeed())
		Expect(metav1.IsControlledBy(deployment, site)).To(BeTrue())
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1"))

		deployment.Status.Replicas = 1
		deployment.Status.ReadyReplicas = 1
		Expect(k8sClient.Status().Update(ctx, deployment)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, site)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(site.Status.Conditions, "Ready")).To(BeTrue())
			g.Expect(site.Status.ReadyReplicas).To(BeEquivalentTo(1))
		}, "10s").Should(Succeed())
	})

	It("changes the Deployment with the Mirror", func() {
		site := mirror("changed")
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":"nginx:2","replicas":3}}`))
		Expect(k8sClient.Patch(ctx, site, patch)).To(Succeed())
		Eventually(func(g Gomega) {
			deployment := &appsv1.Deployment{}
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(site), deployment)).To(Succeed())
			g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:2"))
			g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		}, "10s").Should(Succeed())
	})

	It("cleans up before a deleted Mirror disappears", func() {
		site := mirror("deleted")
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		key := client.ObjectKeyFromObject(site)
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, site)).To(Succeed())
			g.Expect(site.Finalizers).To(ContainElement(Finalizer))
		}, "10s").Should(Succeed())
		Expect(k8sClient.Delete(ctx, site)).To(Succeed())
		Eventually(func() bool { return errors.IsNotFound(k8sClient.Get(ctx, key, site)) }, "10s").Should(BeTrue())
		_, done := cleaned.Load("deleted")
		Expect(done).To(BeTrue())
	})

	It("is protected by the schema of its definition", func() {
		site := mirror("invalid")
		site.Spec.Image = ""
		replicas := int32(-1)
		site.Spec.Replicas = &replicas
		err := k8sClient.Create(ctx, site)
		Expect(errors.IsInvalid(err)).To(BeTrue())
		Expect(err.Error()).To(ContainSubstring("spec.image in body should be at least 1 chars long"))
		Expect(err.Error()).To(ContainSubstring("spec.replicas in body should be greater than or equal to 0"))
	})

	It("holds the lease of the leader", func() {
		lease := &coordinationv1.Lease{}
		Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mirror.example.com"}, lease)).To(Succeed())
		Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
	})

	It("knows users by their certificates", func() {
		admin, err := testEnv.AddUser(envtest.User{Name: "ann", Groups: []string{"system:masters"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(admin.Config(), client.Options{Scheme: scheme.Scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.List(ctx, &corev1.NamespaceList{})).To(Succeed())

		reader, err := testEnv.AddUser(envtest.User{Name: "joe", Groups: []string{"readers"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		c, err = client.New(reader.Config(), client.Options{Scheme: scheme.Scheme})
		Expect(err).NotTo(HaveOccurred())
		err = c.List(ctx, &corev1.NamespaceList{})
		Expect(errors.IsForbidden(err)).To(BeTrue())
		Expect(err.Error()).To(ContainSubstring(`User "joe" cannot list resource "namespaces"`))
	})
})
