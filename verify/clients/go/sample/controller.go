// Package sample is Kubernetes' sample-controller, with a config map instead of its custom resource.
//
// A config map with the label App contains the name of a deployment and its number of replicas.
package sample

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// App is the label of the reconciled config maps.
const App = "kube-informer.example.com/app"

// Controller creates and updates the deployment of each app.
type Controller struct {
	client            kubernetes.Interface
	appsLister        corelisters.ConfigMapLister
	appsSynced        cache.InformerSynced
	deploymentsLister appslisters.DeploymentLister
	deploymentsSynced cache.InformerSynced
	workqueue         workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController registers the handlers. It does not start the informers.
func NewController(client kubernetes.Interface, apps coreinformers.ConfigMapInformer, deployments appsinformers.DeploymentInformer) (*Controller, error) {
	limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
	c := &Controller{
		client:            client,
		appsLister:        apps.Lister(),
		appsSynced:        apps.Informer().HasSynced,
		deploymentsLister: deployments.Lister(),
		deploymentsSynced: deployments.Informer().HasSynced,
		workqueue:         workqueue.NewTypedRateLimitingQueue(limiter),
	}
	_, err := apps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueApp,
		UpdateFunc: func(_, new any) { c.enqueueApp(new) },
	})
	if err != nil {
		return nil, err
	}
	_, err = deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.handleObject,
		UpdateFunc: func(old, new any) {
			if new.(*appsv1.Deployment).ResourceVersion == old.(*appsv1.Deployment).ResourceVersion {
				return // a resync
			}
			c.handleObject(new)
		},
		DeleteFunc: c.handleObject,
	})
	return c, err
}

// Run reconciles until the context is done, and then waits for running reconciliations.
func (c *Controller) Run(ctx context.Context, workers int) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.appsSynced, c.deploymentsSynced) {
		return errors.New("failed to wait for caches to sync")
	}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { wait.UntilWithContext(ctx, c.runWorker, time.Second) })
	}
	<-ctx.Done()
	c.workqueue.ShutDown()
	working.Wait()
	return nil
}

func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	name, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	defer c.workqueue.Done(name)
	if err := c.syncHandler(ctx, name); err != nil {
		runtime.HandleErrorWithContext(ctx, err, "Error syncing; requeuing for later retry", "app", name)
		c.workqueue.AddRateLimited(name)
		return true
	}
	c.workqueue.Forget(name)
	return true
}

func (c *Controller) syncHandler(ctx context.Context, name cache.ObjectName) error {
	app, err := c.appsLister.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil // it was deleted, and the garbage collector deletes its deployment
	}
	if err != nil {
		return err
	}
	wanted, err := newDeployment(app)
	if err != nil {
		runtime.HandleErrorWithContext(ctx, err, "Not an app", "app", name)
		return nil // a retry would fail too
	}
	deployments := c.client.AppsV1().Deployments(name.Namespace)
	deployment, err := c.deploymentsLister.Deployments(name.Namespace).Get(wanted.Name)
	if apierrors.IsNotFound(err) {
		_, err = deployments.Create(ctx, wanted, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, app) {
		return fmt.Errorf("deployment %s is not managed by app %s", wanted.Name, name)
	}
	if *deployment.Spec.Replicas != *wanted.Spec.Replicas {
		deployment = deployment.DeepCopy() // the object in the cache must not be changed
		deployment.Spec.Replicas = wanted.Spec.Replicas
		_, err = deployments.Update(ctx, deployment, metav1.UpdateOptions{})
	}
	return err
}

func (c *Controller) enqueueApp(obj any) {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		runtime.HandleError(err)
		return
	}
	c.workqueue.Add(name)
}

// handleObject enqueues the app that owns an object.
func (c *Controller) handleObject(obj any) {
	object, ok := obj.(metav1.Object)
	if !ok {
		tombstone, ok := obj.(cache.DeletedFinalStateUnknown)
		if !ok {
			runtime.HandleError(fmt.Errorf("unexpected type %T", obj))
			return
		}
		object, ok = tombstone.Obj.(metav1.Object)
		if !ok {
			runtime.HandleError(fmt.Errorf("unexpected type of tombstone %T", tombstone.Obj))
			return
		}
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "ConfigMap" {
		return
	}
	app, err := c.appsLister.ConfigMaps(object.GetNamespace()).Get(owner.Name)
	if err != nil {
		return // the owner was deleted, or is not an app
	}
	c.enqueueApp(app)
}

func newDeployment(app *corev1.ConfigMap) (*appsv1.Deployment, error) {
	replicas, err := strconv.ParseInt(app.Data["replicas"], 10, 32)
	if err != nil {
		return nil, err
	}
	count := int32(replicas)
	labels := map[string]string{"controller": app.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            app.Data["deploymentName"],
			Namespace:       app.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}, nil
}
