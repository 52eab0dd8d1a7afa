//! Adds methods to the factory for kinds that are known only at run time.
//!
//! Some methods return informers of such kinds. These informers cache whole objects or only their metadata.
//! Other methods look up kinds on the server with discovery requests. The results of discovery are not
//! cached.

use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};

use super::{
    SharedInformerFactory,
    discovery::{self, DiscoverError, Discovered},
    kind::{self, KindError, KindRef},
    options::InformerOptions,
    registry::Want,
    request::Request,
};
use crate::shared_informer::SharedInformer;

impl<K> Request<K>
where
    K: Resource<DynamicType = ApiResource> + 'static,
{
    pub(super) fn of_resource(
        kind: &(impl KindRef + ?Sized),
        options: InformerOptions<K>,
    ) -> Result<Self, KindError> {
        kind::check(kind)?;
        let resource = kind.api_resource().clone();
        Ok(Self::of_kind(resource, options, kind.is_namespaced()))
    }
}

impl SharedInformerFactory {
    /// Returns the informer of a kind that is known only at run time. The first call creates the informer.
    ///
    /// This method must be called inside a Tokio runtime.
    ///
    /// The informer is limited to the factory's namespaces, unless `kind` states that the kind is
    /// cluster-scoped. A kind from [`discover`](SharedInformerFactory::discover) states whether it
    /// is namespaced.
    ///
    /// If the server does not serve the kind, the informer does not sync. A wait for the sync with
    /// [`fail_fast`](crate::status::WaitForSync::fail_fast) then returns an error.
    ///
    /// # Errors
    /// Returns [`KindError`] if a name of the kind is missing or is not valid in a URL, or if discovery
    /// reports that the server does not support list and watch of the kind.
    #[doc(alias = "ForResource")]
    #[doc(alias = "GenericInformer")]
    pub fn for_resource(
        &self,
        kind: &(impl KindRef + ?Sized),
    ) -> Result<SharedInformer<DynamicObject>, KindError> {
        let request = Request::of_resource(kind, InformerOptions::new())?;
        let found = self.get_or_make(request, Want::Pinned);
        Ok(found.informer)
    }

    /// Returns the informer of a kind that is known only at run time, with the given options.
    ///
    /// The first call creates the informer. Calls with different selectors or namespaces return different
    /// informers. Calls with equal selectors and namespaces return the same informer, and their other options
    /// must be equal too. This method must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns [`KindError`] for the same reasons as [`SharedInformerFactory::for_resource`], and if the
    /// informer of this kind, these namespaces and these selectors exists with other options.
    #[doc(alias = "NewFilteredDynamicInformer")]
    pub fn for_resource_with(
        &self,
        kind: &(impl KindRef + ?Sized),
        options: InformerOptions<DynamicObject>,
    ) -> Result<SharedInformer<DynamicObject>, KindError> {
        let request = Request::of_resource(kind, options)?;
        let found = self.get_with_options(request, Want::Pinned)?;
        Ok(found.informer)
    }

    /// Returns the informer that caches only the metadata of objects, for a kind that is known only at run
    /// time.
    ///
    /// The server sends only the metadata, so this informer needs less memory than the informer of the whole
    /// objects. The two informers have separate watches and caches. This method must be called inside a Tokio
    /// runtime.
    ///
    /// For a kind with a Rust type, use `factory.informer::<PartialObjectMeta<K>>()`.
    ///
    /// # Errors
    /// Returns [`KindError`] for the same reasons as [`SharedInformerFactory::for_resource`].
    #[doc(alias = "metadatainformer")]
    pub fn for_metadata(
        &self,
        kind: &(impl KindRef + ?Sized),
    ) -> Result<SharedInformer<PartialObjectMeta<DynamicObject>>, KindError> {
        let request = Request::of_resource(kind, InformerOptions::new())?;
        let found = self.get_or_make(request, Want::Pinned);
        Ok(found.informer)
    }

    /// Returns the informer that caches only the metadata of objects, with the given options.
    ///
    /// Calls with different selectors or namespaces return different informers. This method must be called
    /// inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns [`KindError`] for the same reasons as [`SharedInformerFactory::for_resource_with`].
    #[doc(alias = "NewFilteredMetadataInformer")]
    pub fn for_metadata_with(
        &self,
        kind: &(impl KindRef + ?Sized),
        options: InformerOptions<PartialObjectMeta<DynamicObject>>,
    ) -> Result<SharedInformer<PartialObjectMeta<DynamicObject>>, KindError> {
        let request = Request::of_resource(kind, options)?;
        let found = self.get_with_options(request, Want::Pinned)?;
        Ok(found.informer)
    }

    /// Looks up a kind on the server by any of the names that `kubectl` accepts.
    ///
    /// Examples of names are `pods`, `pod`, `Pod`, `po`, `deployments.apps` and `deployments.v1.apps`. Upper
    /// and lower case are equivalent in the part before the first dot. If the name has no group, the core
    /// group has precedence, then the other groups in the server's order. If the name has no version, the
    /// result is in the group's preferred version. A short name such as `po` is used only if no plural name,
    /// singular name or kind equals the name.
    ///
    /// The method sends one request if the name contains its group, or is a plural name, singular name or
    /// kind in the core group. Otherwise it sends two requests. The result is not cached, so a new
    /// `CustomResourceDefinition` is found at once.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     factory: kube_informer::SharedInformerFactory,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let kind = factory.discover("widgets.example.com").await?;
    /// let widgets = factory.for_resource(&kind)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`DiscoverError`] if the server does not know the kind, or if a request fails. A request also
    /// fails if the server does not respond within one minute, or does not support aggregated discovery
    /// (Kubernetes before 1.27).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "RESTMapper")]
    pub async fn discover(&self, name: &str) -> Result<Discovered, DiscoverError> {
        discovery::discover(&*self.inner.client, name).await
    }

    /// Requests and returns every kind that the server serves.
    ///
    /// The kinds are in the server's order. If a kind exists in several versions of its group, only the most
    /// preferred of these versions is returned. The method sends two requests. The result includes kinds that
    /// cannot be listed, such as `SubjectAccessReview`. [`Discovered::serves`] returns whether the server
    /// supports a verb for a kind.
    ///
    /// # Errors
    /// Returns [`DiscoverError::Server`] if a request fails or the server does not support aggregated
    /// discovery.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the pending request.
    #[doc(alias = "ServerPreferredResources")]
    pub async fn discover_all(&self) -> Result<Vec<Discovered>, DiscoverError> {
        discovery::discover_all(&*self.inner.client).await
    }
}
