//! Stores the default options of a factory's informers. Combines them with the options of one informer.
//!
//! A default applies to the informers of all Kubernetes kinds, or of one Rust type such as `Pod`. It applies
//! to all namespaces or to one namespace. This module resolves the precedence between these defaults. It does
//! not create informers.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
};

use kube_core::{ObjectMeta, PartialObjectMeta, Resource};

use super::{
    namespace_options::{NamespaceOptions, split},
    options::InformerOptions,
    scope::{Level, Scope},
};
use crate::{
    decode::Transform, metrics::Metrics, pruning::Pruned, reflector::Error,
    shared_informer::LoopOptions,
};

/// Error handler of a factory, called with an informer's name and an error of its lists or watches.
pub(super) type FactoryErrorHandler = Arc<dyn Fn(&str, &Error) + Send + Sync>;

pub(super) type MetadataTransform = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;

#[derive(Default)]
pub(super) struct Defaults {
    /// Default selectors, namespaces and request options of all kinds, with the lowest precedence.
    pub(super) level: Level,
    pub(super) loop_options: LoopOptions,
    pub(super) metadata: Option<MetadataTransform>,
    metadata_by_namespace: BTreeMap<String, Transform<ObjectMeta>>,
    by_type: ByType,
    /// Options that a wrapper type inherits from the type inside the wrapper.
    ///
    /// The first map is for one wrapper: `Pruned<Pod>` inherits from `Pod`. The second map is for two
    /// wrappers: `Pruned<PartialObjectMeta<Pod>>` inherits from `Pod`. The first map has precedence.
    inherited: [ByType; 2],
    pub(super) error_handler: Option<FactoryErrorHandler>,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
    pub(super) seed: Option<u64>,
}

/// The [`InformerOptions`] of each Rust type.
#[derive(Default)]
struct ByType(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

impl ByType {
    fn get<K: 'static>(&self) -> Option<&InformerOptions<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }

    fn set<K: 'static>(&mut self, options: InformerOptions<K>) {
        self.0.insert(TypeId::of::<K>(), Box::new(options));
    }
}

impl Defaults {
    pub(super) fn set_namespaces<S: Into<String>>(
        &mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<ObjectMeta>)>,
    ) {
        let (selections, transforms) = split(namespaces);
        self.level.namespaces = Some(selections);
        self.metadata_by_namespace = transforms;
    }

    /// Sets default options of the type `K`, which replace earlier values of the same options.
    pub(super) fn set_type<K: 'static>(&mut self, options: InformerOptions<K>) {
        let options = match self.by_type.get::<K>() {
            Some(earlier) => options.or(earlier),
            None => options,
        };
        let of_metadata = options.inherited::<PartialObjectMeta<K>>(|_| None);
        let [near, far] = &mut self.inherited;
        far.set(of_metadata.inherited(of_pruned));
        near.set(of_metadata);
        near.set(options.inherited(of_pruned));
        self.by_type.set(options);
    }

    /// Returns the default options for the type `K`, in order of precedence.
    ///
    /// The options for `K` itself are first. Inherited options follow. For example, `PartialObjectMeta<Pod>`
    /// inherits the options of `Pod`.
    fn of_type<K: 'static>(&self) -> impl Iterator<Item = &InformerOptions<K>> + Clone {
        let [near, far] = &self.inherited;
        [&self.by_type, near, far]
            .into_iter()
            .filter_map(ByType::get)
    }

    pub(super) fn scope<K: 'static>(&self, own: &InformerOptions<K>, is_namespaced: bool) -> Scope {
        let mut levels = vec![&own.level];
        levels.extend(self.of_type::<K>().map(|options| &options.level));
        levels.push(&self.level);
        Scope::resolve(&levels, is_namespaced)
    }

    /// Fills the unset options in `own` with the defaults for `K`, or else with the defaults for all kinds.
    ///
    /// For the options that can differ between namespaces, use [`Defaults::scope`] and
    /// [`Defaults::transform`].
    pub(super) fn complete<K: 'static>(&self, own: InformerOptions<K>) -> InformerOptions<K> {
        let of_type = self.of_type::<K>();
        let options = of_type.fold(own, InformerOptions::or);
        InformerOptions {
            loop_options: options.loop_options.or(self.loop_options),
            ..options
        }
    }

    /// Returns the function that transforms an informer's objects, if a transform is set.
    ///
    /// The function first applies the factory's transform of all metadata. Then it applies the first of these
    /// transforms that is set:
    /// - the transform in `own`, the options of this informer;
    /// - the factory's transform for the type `K`;
    /// - the factory's transform for all kinds in the object's namespace.
    ///
    /// In the first two cases, a transform for the object's namespace has precedence over one for all
    /// namespaces.
    ///
    /// The namespace `""` stands for every namespace that the scope does not list. For an object in such a
    /// namespace, the transform for `""` counts as the transform for the object's namespace. Transforms for a
    /// namespace do not apply to objects without a namespace.
    pub(super) fn transform<K: Resource + 'static>(
        &self,
        own: &InformerOptions<K>,
        scope: &Scope,
    ) -> Option<Transform<K>> {
        let options = || std::iter::once(own).chain(self.of_type::<K>());
        let of_cluster_scoped = options().find_map(|options| options.transforms.everywhere.clone());
        let nearest = |namespace: &str| {
            let set = options().find_map(|options| options.transforms.of(namespace));
            let of_all = || self.metadata_by_namespace.get(namespace);
            set.cloned().or_else(|| of_all().map(of_metadata::<K>))
        };
        let sections = scope.sections.iter();
        let by_namespace: BTreeMap<_, _> = sections
            .map(|section| (section.namespace.clone(), nearest(&section.namespace)))
            .collect();
        let first = self.metadata.clone();
        let any = of_cluster_scoped.is_some() || by_namespace.values().any(Option::is_some);
        if first.is_none() && !any {
            return None;
        }
        Some(Arc::new(move |object: &mut K| {
            // Read before a transform can change the metadata.
            let second = match object.meta().namespace.as_deref().unwrap_or_default() {
                "" => Some(&of_cluster_scoped),
                name => by_namespace.get(name).or_else(|| by_namespace.get("")),
            };
            if let Some(first) = &first {
                first(object.meta_mut());
            }
            second
                .and_then(Option::as_ref)
                .map_or(Ok(()), |second| second(object))
        }))
    }
}

fn of_metadata<K: Resource + 'static>(transform: &Transform<ObjectMeta>) -> Transform<K> {
    let transform = Arc::clone(transform);
    Arc::new(move |object: &mut K| transform(object.meta_mut()))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other types have no transform that fits"
)]
fn of_pruned<K: 'static>(transform: &Transform<K>) -> Option<Transform<Pruned<K>>> {
    let transform = Arc::clone(transform);
    Some(Arc::new(move |object: &mut Pruned<K>| {
        transform(Pruned::get_mut(object))
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn the_options_of_the_most_specific_type_apply_in_any_order_of_calls() {
        type Metadata = PartialObjectMeta<Pod>;
        let second = Duration::from_secs(1);
        let of_kind = |defaults: &mut Defaults| {
            defaults.set_type(InformerOptions::<Pod>::new().resync(second).batch_size(5));
        };
        let of_metadata = |defaults: &mut Defaults| {
            defaults.set_type(InformerOptions::<Metadata>::new().resync(2 * second));
        };
        let holds = |first: &dyn Fn(&mut Defaults), then: &dyn Fn(&mut Defaults)| {
            let mut defaults = Defaults::default();
            first(&mut defaults);
            then(&mut defaults);
            let options = defaults.complete(InformerOptions::<Pruned<Metadata>>::new());
            let options = options.loop_options;
            (options.resync(), options.batch_size())
        };
        assert_eq!(holds(&of_kind, &of_metadata), (2 * second, 5));
        assert_eq!(holds(&of_metadata, &of_kind), (2 * second, 5));
    }

    #[test]
    fn transforms_of_namespaces_do_not_apply_to_cluster_scoped_objects() {
        fn trail<K: Resource + 'static>(
            defaults: &Defaults,
            own: &InformerOptions<K>,
            mut object: K,
        ) -> Option<String> {
            // The scope of a kind that is known only by its name counts as namespaced.
            let transform = defaults.transform(own, &defaults.scope(own, true));
            transform.unwrap()(&mut object).unwrap();
            object.meta().generate_name.clone()
        }
        let mark = |metadata: &mut ObjectMeta| metadata.generate_name = Some("all".to_owned());
        let mut defaults = Defaults::default();
        defaults.set_namespaces([("", NamespaceOptions::new().transform(mark))]);
        let mut pod = Pod::default();
        let none = InformerOptions::new;
        assert_eq!(trail(&defaults, &none(), pod.clone()), None);
        let named = NamespaceOptions::new().transform(move |pod: &mut Pod| mark(&mut pod.metadata));
        let named = none().namespaces_with([("", named)]);
        assert_eq!(trail(&defaults, &named, pod.clone()), None);
        let everywhere = none().transform(move |pod: &mut Pod| mark(&mut pod.metadata));
        assert_eq!(
            trail(&defaults, &everywhere, pod.clone()),
            Some("all".to_owned())
        );
        pod.metadata.namespace = Some("default".to_owned());
        for own in [none(), named, everywhere] {
            assert_eq!(trail(&defaults, &own, pod.clone()), Some("all".to_owned()));
        }
    }
}
