//! `--seed-objects`: so many objects of a kind before anybody asks.
//!
//! Guarantees: what is typed names a kind that the server stores; the same flags give the same objects, but for their creation times.

use std::{fmt, str::FromStr};

use anyhow::Context as _;
use fastrand::Rng;
use kube_informer_apiserver::{Kind, Kinds, Scope, Server};

use super::template::{self, NAMESPACES, Template};

/// The most objects of one kind: 10 GB of them, and numbers of 8 digits.
const COUNT_MAX: u32 = 10_000_000;

/// Objects stored between two looks at whether a signal has come: some 10 ms.
const STRIDE: u32 = 256;

/// What `--seed-objects pods=100` says.
#[derive(Clone, Debug)]
pub(crate) struct SeedObjects {
    kind: Kind,
    count: u32,
}

/// The objects of one kind that have been seeded and still exist, as far as we know.
#[derive(Debug)]
pub(super) struct Population {
    pub(super) template: Template,
    /// How many there were at first.
    pub(super) count: u32,
    /// The numbers of those that exist.
    pub(super) alive: Vec<u32>,
    /// The number of the next.
    pub(super) next: u32,
}

// === impl SeedObjects ===

impl FromStr for SeedObjects {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, count) = text
            .split_once('=')
            .ok_or("write a resource and how many, such as pods=1000")?;
        let kinds = Kinds::builtin();
        let kind = kind_named(&kinds, resource).ok_or_else(|| {
            format!("there is no resource {resource:?}, such as pods or deployments.apps")
        })?;
        if !is_stored(kind) {
            return Err(format!("{} can be asked for, but not stored", kind.plural));
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
    /// The resource, as errors of a server name it.
    pub(crate) fn resource(&self) -> String {
        self.kind.group_resource()
    }
}

impl fmt::Display for SeedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.kind.group_resource())
    }
}

/// Whether objects of a kind can be created, and be there afterwards.
pub(super) fn is_stored(kind: &Kind) -> bool {
    let has = |verb: &str| kind.verbs.iter().any(|served| served == verb);
    has("create") && has("list")
}

/// The kind that people mean by a name, as kubectl finds it; of several the preferred version of the first group.
fn kind_named<'a>(kinds: &'a Kinds, name: &str) -> Option<&'a Kind> {
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

/// Stores what is wanted, and the namespaces for it.
///
/// # Errors
/// The server refuses an object.
///
/// # Cancel safety
/// Dropped in between, a part of the objects is there.
pub(super) async fn fill(
    server: &Server,
    wanted: &[SeedObjects],
    rng: &mut Rng,
) -> anyhow::Result<Vec<Population>> {
    let is_namespaced = |wanted: &SeedObjects| wanted.kind.scope == Scope::Namespaced;
    if wanted.iter().any(is_namespaced) {
        for name in NAMESPACES {
            server
                .create(template::namespace(name))
                .with_context(|| format!("can't store namespace {name}"))?;
        }
    }
    let nodes = wanted.iter().find(|wanted| wanted.resource() == "nodes");
    let nodes = nodes.map_or(0, |nodes| nodes.count);
    let mut populations = Vec::new();
    for SeedObjects { kind, count } in wanted {
        let template = Template::new(kind, *count, nodes);
        for number in 0..*count {
            if number % STRIDE == 0 {
                tokio::task::yield_now().await;
            }
            server
                .create(template.object(number, rng))
                .with_context(|| {
                    format!("can't store {} {}", kind.singular, template.key(number))
                })?;
        }
        populations.push(Population {
            template,
            count: *count,
            alive: (0..*count).collect(),
            next: *count,
        });
    }
    Ok(populations)
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
    fn what_can_not_be_seeded_is_named_in_one_line() {
        let rows = [
            ("pods", "pods=1000"),
            ("unicorns=3", "no resource \"unicorns\""),
            ("tokenreviews=3", "tokenreviews can be asked for"),
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
    async fn as_many_objects_are_there_as_were_wanted_and_their_namespaces_too() {
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
}
