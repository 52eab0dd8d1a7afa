//! Creates the objects of `serve --seed-objects` before clients can connect to the server.
//!
//! Guarantees:
//! - An argument is rejected if it names a kind that the server does not store.
//! - On a new server, the same flags create the same objects, except for their creation times.
//! - Seeded objects that the server has loaded from its data directory count toward the requested number.
//! - No object is overwritten.
//!
//! The content of the objects is defined in the module `template`.

use std::{collections::BTreeSet, fmt, str::FromStr};

use anyhow::Context as _;
use fastrand::Rng;
use kube_client::{Api, Client, api::ListParams};
use kube_core::{GroupVersionKind, discovery::ApiResource, dynamic::DynamicObject};
use kube_informer_apiserver::{Kind, Kinds, Scope, Server};

use super::template::{self, NAMESPACES, SEEDED, Template};

/// Maximum number of seeded objects of one kind, about 10 GB of JSON.
const COUNT_MAX: u32 = 10_000_000;

/// Maximum objects per page of a list of existing objects, about 5 MB of metadata.
const PAGE: u32 = 10_000;

/// Parsed argument of `--seed-objects`, such as `pods=100`: a kind and a number of objects.
#[derive(Clone, Debug)]
pub(crate) struct SeedObjects {
    kind: Kind,
    count: u32,
}

/// The seeded objects of one kind, identified by the numbers in their names.
#[derive(Debug)]
pub(super) struct Population {
    pub(super) template: Template,
    /// Number of seeded objects that the server already had before this run.
    pub(super) found: usize,
    /// Target number of objects. `serve --churn` alternately creates one more object and deletes one.
    pub(super) count: u32,
    /// Numbers in the names of the objects that currently exist.
    pub(super) alive: Vec<u32>,
    /// Number in the name of the next object that `--churn` creates.
    pub(super) next: u32,
}

// === impl SeedObjects ===

impl FromStr for SeedObjects {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, count) = text
            .split_once('=')
            .ok_or("expected RESOURCE=N, such as pods=1000")?;
        let kinds = Kinds::builtin();
        let kind = kind_named(&kinds, resource).ok_or_else(|| {
            format!(
                "unknown resource {resource:?}; expected a name such as pods or deployments.apps"
            )
        })?;
        if kind.kind == DEFINITION {
            return Err(format!(
                "{} can't be seeded; install definitions with --crd FILE",
                kind.plural
            ));
        }
        if !can_be_seeded(kind) {
            return Err(format!(
                "{} can't be seeded, because the server does not store them",
                kind.plural
            ));
        }
        match count.parse() {
            Ok(count @ 1..=COUNT_MAX) => Ok(Self {
                kind: kind.clone(),
                count,
            }),
            _ => Err(format!(
                "{count:?} is not a number of {} from 1 to {COUNT_MAX}",
                kind.plural
            )),
        }
    }
}

impl SeedObjects {
    /// Returns the plural and group of the kind, such as `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        self.kind.group_resource()
    }
}

impl fmt::Display for SeedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.kind.group_resource())
    }
}

/// The kind of definitions of custom kinds.
const DEFINITION: &str = "CustomResourceDefinition";

/// Returns whether the server stores generated objects of the kind: whether the kind supports `create` and
/// `list`, and is not [`DEFINITION`], whose objects are validated.
pub(super) fn can_be_seeded(kind: &Kind) -> bool {
    let has = |verb: &str| kind.verbs.iter().any(|served| served == verb);
    has("create") && has("list") && kind.kind != DEFINITION
}

/// Finds a kind by its plural, singular or short name, or by its plural and group, as kubectl does.
///
/// If several kinds match, kinds in the preferred version of their group take precedence. If several kinds
/// remain, returns the first one in the order of [`Kinds::iter`].
pub(super) fn kind_named<'a>(kinds: &'a Kinds, name: &str) -> Option<&'a Kind> {
    let is_it = |kind: &&Kind| {
        kind.plural == name
            || kind.singular == name
            || kind.group_resource() == name
            || kind.short_names.iter().any(|short| short == name)
    };
    let found = || kinds.iter().filter(is_it);
    found()
        .find(|kind| kind.preferred)
        .or_else(|| found().next())
}

/// Creates the missing seeded objects, and returns all seeded objects of each kind.
///
/// # Cancel safety
/// If the future is dropped, the objects that were already created remain on the server.
pub(super) async fn fill(
    server: &Server,
    wanted: &[SeedObjects],
    rng: &mut Rng,
) -> anyhow::Result<Vec<Population>> {
    let is_namespaced = |wanted: &SeedObjects| wanted.kind.scope == Scope::Namespaced;
    if wanted.iter().any(is_namespaced) {
        let is_missing = |name: &&str| server.get("v1", "namespaces", name).is_none();
        server
            .create_all(
                NAMESPACES
                    .into_iter()
                    .filter(is_missing)
                    .map(template::namespace),
            )
            .await
            .context("can't seed the namespaces")?;
    }
    let nodes = wanted.iter().find(|wanted| wanted.resource() == "nodes");
    let nodes = nodes.map_or(0, |nodes| nodes.count);
    let mut populations = Vec::new();
    for wanted in wanted {
        let template = Template::new(&wanted.kind, wanted.count, nodes);
        populations.push(Population::fill(server, template, wanted.count, rng).await?);
    }
    Ok(populations)
}

// === impl Population ===

impl Population {
    /// Finds the seeded objects of one kind, and creates more until `wanted` of them exist.
    async fn fill(
        server: &Server,
        template: Template,
        wanted: u32,
        rng: &mut Rng,
    ) -> anyhow::Result<Self> {
        let there = numbers(server, &template).await?;
        let kind = template.kind();
        let (api_version, plural) = (kind.api_version(), &kind.plural);
        // The name may belong to an object of another client.
        let is_free = |number: &u32| {
            !there.contains(number)
                && server
                    .get(&api_version, plural, &template.key(*number))
                    .is_none()
        };
        let missing = (wanted as usize).saturating_sub(there.len());
        let missing: Vec<u32> = (0..).filter(is_free).take(missing).collect();
        let objects = missing.iter().map(|number| template.object(*number, rng));
        server
            .create_all(objects)
            .await
            .with_context(|| format!("can't seed {}", kind.group_resource()))?;
        let found = there.len();
        let alive: Vec<u32> = there.into_iter().chain(missing).collect();
        let next = alive.iter().max().map_or(0, |last| last + 1);
        // The additional object of churn must not accumulate over restarts.
        let count = u32::try_from(alive.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Ok(Self {
            found,
            count: count.max(wanted),
            alive,
            next,
            template,
        })
    }
}

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.template.kind().group_resource();
        write!(f, "{} {resource}", self.alive.len())?;
        match self.found {
            0 => Ok(()),
            found => write!(f, " ({found} were there)"),
        }
    }
}

/// Lists the seeded objects of one kind, and returns the numbers in their names.
async fn numbers(server: &Server, template: &Template) -> anyhow::Result<BTreeSet<u32>> {
    let kind = template.kind();
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind),
        &kind.plural,
    );
    let client = Client::new(server.clone(), "default");
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let selector = format!("{SEEDED}={}", kind.plural);
    let mut params = ListParams::default().labels(&selector).limit(PAGE);
    let mut numbers = BTreeSet::new();
    loop {
        let page = api.list_metadata(&params).await;
        let page =
            page.with_context(|| format!("can't list the seeded {}", kind.group_resource()))?;
        let seeded = page.items.iter().filter_map(|object| {
            let name = object.metadata.name.as_deref()?;
            template.number(object.metadata.namespace.as_deref(), name)
        });
        numbers.extend(seeded);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(numbers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        let parsed = text.parse::<SeedObjects>();
        parsed.map_or_else(|error| format!("error: {error}"), |it| it.to_string())
    }

    #[test]
    fn a_resource_is_found_by_every_name_that_kubectl_knows() {
        for name in ["deployments", "deployments.apps", "deployment", "deploy"] {
            assert_eq!(parsed(&format!("{name}=3")), "3 deployments.apps");
        }
        assert_eq!(parsed("events=1"), "1 events", "the core group comes first");
        let hpa: SeedObjects = "hpa=1".parse().unwrap();
        assert_eq!(hpa.kind.version, "v2", "the preferred version");
    }

    #[test]
    fn an_invalid_argument_is_reported_in_one_line() {
        let rows = [
            ("pods", "pods=1000"),
            ("unicorns=3", "unknown resource \"unicorns\""),
            ("tokenreviews=3", "tokenreviews can't be seeded"),
            ("pods=0", "from 1 to"),
            ("pods=many", "\"many\" is not a number of pods"),
            ("pods=-1", "\"-1\" is not a number of pods"),
            ("pods=10000001", "10000000"),
        ];
        for (text, says) in rows {
            let error = parsed(text);
            assert!(
                error.starts_with("error: ") && error.contains(says),
                "{text}: {error}"
            );
            assert!(!error.contains('\n'), "{text}: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_requested_objects_and_their_namespaces_are_created() {
        let server = Server::builder().build();
        let wanted = ["pods=700", "nodes=20", "configmaps=30"].map(|text| text.parse().unwrap());
        let seeded = fill(&server, &wanted, &mut Rng::with_seed(1))
            .await
            .unwrap();
        let count = |plural: &str| server.list("v1", plural).len();
        assert_eq!(
            [count("pods"), count("nodes"), count("configmaps")],
            [700, 20, 30]
        );
        assert_eq!(seeded.iter().map(|it| it.alive.len()).sum::<usize>(), 750);
        for pod in server.list("v1", "pods") {
            let text = |pointer: &str| pod.pointer(pointer).unwrap().as_str().unwrap().to_owned();
            let namespace = text("/metadata/namespace");
            assert!(
                server.get("v1", "namespaces", &namespace).is_some(),
                "{namespace}"
            );
            let node = text("/spec/nodeName");
            assert!(server.get("v1", "nodes", &node).is_some(), "{node}");
        }
    }

    async fn seed(server: &Server, wanted: &str) -> String {
        let wanted = [wanted.parse().unwrap()];
        let mut rng = Rng::with_seed(server.revision());
        let seeded = fill(server, &wanted, &mut rng).await.unwrap();
        seeded[0].to_string()
    }

    fn uids(server: &Server) -> BTreeSet<String> {
        let pods = server.list("v1", "pods").into_iter();
        pods.map(|pod| pod["metadata"]["uid"].to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn only_missing_objects_are_created() {
        let server = Server::builder().build();
        assert_eq!(seed(&server, "pods=700").await, "700 pods");
        let before = server.list("v1", "pods");
        let revision = server.revision();
        assert_eq!(seed(&server, "pods=700").await, "700 pods (700 were there)");
        assert_eq!(seed(&server, "pods=20").await, "700 pods (700 were there)");
        assert_eq!(server.revision(), revision, "nothing is written");

        server
            .delete("v1", "pods", "identity/gateway-000003")
            .unwrap();
        assert_eq!(seed(&server, "pods=701").await, "701 pods (699 were there)");
        let after = server.list("v1", "pods");
        let kept = before.iter().filter(|pod| after.contains(pod)).count();
        assert_eq!((after.len(), kept), (701, 699));
        assert_eq!(uids(&server).len(), 701, "every uid is unique");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_of_another_client_is_skipped_and_not_counted() {
        let server = Server::builder().enforce_namespaces(false).build();
        let kinds = Kinds::builtin();
        let template = Template::new(kind_named(&kinds, "pods").unwrap(), 1, 0);
        let mut theirs = template.object(0, &mut Rng::with_seed(1));
        theirs["metadata"]["labels"] = serde_json::json!({});
        let theirs = server.create(theirs).unwrap();
        assert_eq!(seed(&server, "pods=10").await, "10 pods");
        assert_eq!(server.list("v1", "pods").len(), 11);
        let stored = server.get("v1", "pods", &template.key(0));
        assert_eq!(stored, Some(theirs));
    }
}
