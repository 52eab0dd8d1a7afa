//! Kinds that are known at run time only, whole or their metadata alone; and what the server says of
//! them.

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
    /// The informer of a kind that is known at run time only. Must be called inside a Tokio runtime.
    ///
    /// The factory's namespaces apply, unless the kind comes from
    /// [discovery](SharedInformerFactory::discover) and has none. Of a kind that the server does not
    /// know, waiting for the sync says so, with
    /// [`fail_fast`](crate::status::WaitForSync::fail_fast) at once.
    ///
    /// # Errors
    /// A name of the kind is missing or can't stand in a URL, or discovery says that the server does
    /// not list and watch it.
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

    /// The same with options of its own. Selectors and namespaces make it another informer; everything
    /// else must be the same as when it was first asked for.
    ///
    /// # Errors
    /// As for [`SharedInformerFactory::for_resource`], and if there is an informer for this kind and
    /// scope with other options.
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

    /// The informer of the metadata of a kind that is known at run time only: the server sends nothing
    /// else, so it costs a fraction of the memory. It is another informer than the one of the whole
    /// objects, with a watch and a cache of its own. Must be called inside a Tokio runtime.
    ///
    /// Of a kind that has a Rust type it is `factory.informer::<PartialObjectMeta<K>>()`.
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

    /// The same with options of its own.
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

    /// What the server knows under one of the names that `kubectl` takes: `pods`, `pod`, `Pod`, `po`,
    /// `deployments.apps`, `deployments.v1.apps`; in any case. Without a group the core group comes
    /// first, then the others in the server's order; without a version, the one its group prefers. A
    /// short name counts if nothing is called so in full.
    ///
    /// It takes one request if the name says its group, or is a full name of the core group, and two
    /// otherwise. Nothing is kept: a definition that was added since is found.
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
    /// The server knows no such kind, or can't be asked: it does not answer, within a minute at the
    /// latest, or it is older than aggregated discovery (Kubernetes 1.27).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "RESTMapper")]
    pub async fn discover(&self, name: &str) -> Result<Discovered, DiscoverError> {
        discovery::discover(&*self.inner.client, name).await
    }

    /// Every kind that the server knows, in the version its group prefers, in the server's order; two
    /// requests. Some can only be created, see [`Discovered::serves`].
    ///
    /// # Errors
    /// The server can't be asked, as for [`SharedInformerFactory::discover`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "ServerPreferredResources")]
    pub async fn discover_all(&self) -> Result<Vec<Discovered>, DiscoverError> {
        discovery::discover_all(&*self.inner.client).await
    }
}
