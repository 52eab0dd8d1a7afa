package site

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Finalizer keeps a deleted site until its config map is deleted.
const Finalizer = "example.org/page"

// Reconciler writes the config map and the status of each site.
type Reconciler struct {
	client.Client
	// Started is called at the start of each reconciliation.
	Started func(name string)
}

// AddTo adds the controller and its index to a manager.
func (r *Reconciler) AddTo(m manager.Manager) error {
	tier := func(o client.Object) []string { return []string{o.(*Site).Spec.Tier} }
	if err := m.GetFieldIndexer().IndexField(context.Background(), &Site{}, Tier, tier); err != nil {
		return err
	}
	// A test runs two managers in one process, so their controllers have the same name.
	options := controller.Options{SkipNameValidation: new(true)}
	return builder.ControllerManagedBy(m).
		For(&Site{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(options).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.Started(request.Name)
	s := &Site{}
	if err := r.Get(ctx, request.NamespacedName, s); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}}
	if !s.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.finalize(ctx, s, page)
	}
	if controllerutil.AddFinalizer(s, Finalizer) {
		if err := r.Update(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"page": s.Spec.Page}
		return controllerutil.SetControllerReference(s, page, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.writeStatus(ctx, s)
}

func (r *Reconciler) finalize(ctx context.Context, s *Site, page *corev1.ConfigMap) error {
	if err := r.Delete(ctx, page); client.IgnoreNotFound(err) != nil {
		return err
	}
	before := s.DeepCopy()
	if !controllerutil.RemoveFinalizer(s, Finalizer) {
		return nil
	}
	return r.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) writeStatus(ctx context.Context, s *Site) error {
	before := s.DeepCopy()
	s.Status.Replicas = *s.Spec.Replicas
	s.Status.Selector = "site=" + s.Name
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type:               Ready,
		Status:             metav1.ConditionTrue,
		Reason:             "Written",
		Message:            "the config map has the page",
		ObservedGeneration: s.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, s.Status) {
		return nil
	}
	return r.Status().Update(ctx, s)
}
