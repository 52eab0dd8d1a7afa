// Package controller contains the reconcilers.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webv1 "github.com/kube-informer/kube-informer/verify/clients/kubebuilder/api/v1"
)

// Finalizer holds a deleted Mirror until its cleanup is done.
const Finalizer = "web.example.com/cleanup"

// MirrorReconciler reconciles Mirrors: each has a Deployment of its name.
type MirrorReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	// Cleanup is called once before a deleted Mirror disappears.
	Cleanup func(name string)
}

// +kubebuilder:rbac:groups=web.example.com,resources=mirrors,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=web.example.com,resources=mirrors/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=web.example.com,resources=mirrors/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch

// Reconcile makes the Deployment of a Mirror as its spec says, and reports its ready replicas.
func (r *MirrorReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mirror webv1.Mirror
	if err := r.Get(ctx, req.NamespacedName, &mirror); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !mirror.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&mirror, Finalizer) {
			r.Cleanup(mirror.Name)
			return ctrl.Result{}, r.Update(ctx, &mirror)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&mirror, Finalizer) {
		if err := r.Update(ctx, &mirror); err != nil {
			return ctrl.Result{}, err
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mirror.Namespace, Name: mirror.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"mirror": mirror.Name}
		deployment.Spec.Replicas = mirror.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Image = mirror.Spec.Image
		return controllerutil.SetControllerReference(&mirror, deployment, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	base := mirror.DeepCopy()
	mirror.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", Message: "not all pods are ready",
		ObservedGeneration: mirror.Generation,
	}
	if deployment.Status.ReadyReplicas == *mirror.Spec.Replicas {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "AllReady", "all pods are ready"
	}
	meta.SetStatusCondition(&mirror.Status.Conditions, condition)
	return ctrl.Result{}, r.Status().Patch(ctx, &mirror, client.MergeFrom(base))
}

// SetupWithManager adds the reconciler to a manager.
func (r *MirrorReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&webv1.Mirror{}).
		Owns(&appsv1.Deployment{}).
		Named("mirror").
		Complete(r)
}
