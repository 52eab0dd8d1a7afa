//! Informers and discovery for kinds that are known only at run time.
//!
//! An informer caches whole objects or only their metadata. The results of discovery are not cached.

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
    /// Returns the informer of a kind that is known only at run time.
    ///
    /// Must be called inside a Tokio runtime.
    ///
    /// The factory's namespaces apply, unless the kind comes from [discovery](SharedInformerFactory::discover)
    /// and is cluster-scoped. If the server does not know the kind, the wait for the sync reports it, and with
    /// [`fail_fast`](crate::status::WaitForSync::fail_fast) fails at once.
    ///
    /// # Errors
    /// A name of the kind is missing or is not valid in a URL, or discovery reports that the server does not
    /// list and watch the kind.
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
    /// Selectors and namespaces identify the informer: other selectors or namespaces create another informer.
    /// All other options must equal those of the first request.
    ///
    /// # Errors
    /// As for [`SharedInformerFactory::for_resource`]; also if an informer of this kind and scope exists with
    /// other options.
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

    /// Returns the informer of the metadata of a kind that is known only at run time.
    ///
    /// The server sends only the metadata, so this informer needs a fraction of the memory. It has its own
    /// watch and cache, separate from the informer of the whole objects. Must be called inside a Tokio runtime.
    ///
    /// For a kind with a Rust type, use `factory.informer::<PartialObjectMeta<K>>()`.
    ///
    /// # Errors
    /// As for [`SharedInformerFactory::for_resource`].
    #[doc(alias = "metadatainformer")]
    pub fn for_metadata(
        &self,
        kind: &(impl KindRef + ?Sized),
    ) -> Result<SharedInformer<PartialObjectMeta<DynamicObject>>, KindError> {
        let request = Request::of_resource(kind, InformerOptions::new())?;
        let found = self.get_or_make(request, Want::Pinned);
        Ok(found.informer)
    }

    /// Returns the informer of the metadata of a kind that is known only at run time, with the given options.
    ///
    /// # Errors
    /// As for [`SharedInformerFactory::for_resource_with`].
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
    /// Examples are `pods`, `pod`, `Pod`, `po`, `deployments.apps` and `deployments.v1.apps`, in upper or lower
    /// case. If the name has no group, the core group has precedence, then the other groups in the server's
    /// order. If it has no version, the group's preferred version is used. A short name matches only if no full
    /// name matches.
    ///
    /// The look-up sends one request if the name contains its group or is a full name of the core group, and
    /// two requests otherwise. The result is not cached, so a newly added definition is found.
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
    /// The server does not know the kind, does not respond within one minute, or does not support aggregated
    /// discovery (Kubernetes before 1.27). Other request errors are returned too.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "RESTMapper")]
    pub async fn discover(&self, name: &str) -> Result<Discovered, DiscoverError> {
        discovery::discover(&*self.inner.client, name).await
    }

    /// Requests every kind that the server serves, each in the preferred version of its group.
    ///
    /// The kinds are in the server's order. The look-up sends two requests. Some kinds can only be created,
    /// see [`Discovered::serves`].
    ///
    /// # Errors
    /// A request fails, as for [`SharedInformerFactory::discover`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "ServerPreferredResources")]
    pub async fn discover_all(&self) -> Result<Vec<Discovered>, DiscoverError> {
        discovery::discover_all(&*self.inner.client).await
    }
}
