//! Compares the pages of the server's lists with the pages of a simple reference implementation.
//!
//! The test runs random sequences of steps. A step writes an object, expires all `continue` tokens of past
//! revisions, or requests one page with a random limit.
//!
//! A chain is the sequence of all pages of one list. Each page has the `continue` token for the next page.

use std::collections::BTreeMap;

use kube_informer_apiserver::Server;
use proptest::prelude::*;
use serde_json::json;

use crate::ask::{Reply, get};

/// Namespace and name of each config map, in the order of their keys in etcd.
const KEYS: [(&str, &str); 8] = [
    ("a-b", "x"),
    ("a", "x"),
    ("a", "x-y"),
    ("a", "y"),
    ("a", "z"),
    ("b", "x"),
    ("b", "y"),
    ("b", "z"),
];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Creates or changes the config map with this index in [`KEYS`].
    Put(usize),
    Delete(usize),
    /// Expires all past revisions and their `continue` tokens.
    Compact,
    /// Requests the next page of the list in progress, or the first page of a new list, with this limit.
    Page(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..KEYS.len()).prop_map(Step::Put),
        2 => (0..KEYS.len()).prop_map(Step::Delete),
        1 => Just(Step::Compact),
        6 => (1..4_usize).prop_map(Step::Page),
    ];
    prop::collection::vec(step, 0..40)
}

/// The config maps that exist at one revision. Maps the index of each config map in [`KEYS`] to its
/// `resourceVersion`.
type Moment = BTreeMap<usize, u64>;

/// A list with further pages, and the `continue` token for the next page.
struct Chain {
    token: String,
    revision: u64,
    /// Index in [`KEYS`] from which the next page continues.
    from: usize,
}

struct Reference {
    /// The config maps at each revision; the index is the revision.
    moments: Vec<Moment>,
    /// Oldest revision whose `continue` tokens are valid.
    horizon: u64,
    namespace: Option<&'static str>,
}

impl Reference {
    fn revision(&self) -> u64 {
        self.moments.len() as u64 - 1
    }

    fn write(&mut self, change: impl FnOnce(&mut Moment, u64)) {
        let mut moment = self.moments.last().cloned().unwrap_or_default();
        change(&mut moment, self.moments.len() as u64);
        self.moments.push(moment);
    }

    /// Returns the expected config maps at `revision` whose index in [`KEYS`] is at least `from`.
    ///
    /// Each item contains the index and the `resourceVersion` of a config map. If `namespace` is set, only
    /// config maps of this namespace are included.
    fn rest(&self, revision: u64, from: usize) -> Vec<(usize, u64)> {
        let moment = usize::try_from(revision).map(|revision| &self.moments[revision]);
        let rest = moment.expect("revisions are few").range(from..);
        let listed = |key: usize| {
            self.namespace
                .is_none_or(|namespace| KEYS[key].0 == namespace)
        };
        rest.map(|(key, revision)| (*key, *revision))
            .filter(|(key, _)| listed(*key))
            .collect()
    }

    fn path(&self, limit: usize, token: Option<&str>) -> String {
        let namespace = self
            .namespace
            .map(|namespace| format!("/namespaces/{namespace}"));
        let token = token.map(|token| format!("&continue={token}"));
        let (namespace, token) = (namespace.unwrap_or_default(), token.unwrap_or_default());
        format!("/api/v1{namespace}/configmaps?limit={limit}{token}")
    }
}

/// Asserts that `page` contains the first `limit` items of [`Reference::rest`].
///
/// Returns the [`Chain`] for the next page, or `None` if `page` is the last page of the list.
fn judge(
    reference: &Reference,
    page: &Reply,
    (revision, from, limit): (u64, usize, usize),
) -> Result<Option<Chain>, TestCaseError> {
    let rest = reference.rest(revision, from);
    let (shown, left) = rest.split_at(limit.min(rest.len()));
    let expected: Vec<_> = shown
        .iter()
        .map(|(key, revision)| {
            let (namespace, name) = KEYS[*key];
            format!("{namespace}/{name}@{revision}")
        })
        .collect();
    prop_assert_eq!(page.code, 200);
    let items = page.json["items"].as_array().cloned().unwrap_or_default();
    let found = items.iter().map(|item| {
        let text = |member: &str| {
            item["metadata"][member]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        format!(
            "{}/{}@{}",
            text("namespace"),
            text("name"),
            text("resourceVersion")
        )
    });
    prop_assert_eq!(found.collect::<Vec<_>>(), expected);
    prop_assert_eq!(page.revision(), revision.to_string());
    let remaining = &page.json["metadata"]["remainingItemCount"];
    prop_assert_eq!(remaining.as_u64().unwrap_or_default(), left.len() as u64);
    prop_assert_eq!(page.continue_token().is_some(), !left.is_empty());
    Ok(page.continue_token().map(|token| Chain {
        token: token.to_owned(),
        revision,
        from: shown.last().map_or(from, |(key, _)| key + 1),
    }))
}

async fn page(
    server: &Server,
    reference: &Reference,
    chain: Option<Chain>,
    limit: usize,
) -> Result<Option<Chain>, TestCaseError> {
    let Some(mut chain) = chain else {
        let page = get(server, &reference.path(limit, None)).await;
        return judge(reference, &page, (reference.revision(), 0, limit));
    };
    let next = get(server, &reference.path(limit, Some(&chain.token))).await;
    if chain.revision >= reference.horizon {
        return judge(reference, &next, (chain.revision, chain.from, limit));
    }
    prop_assert_eq!(next.code, 410);
    // The 410 response has a token that continues after the same key, at the current revision.
    chain.token = next.continue_token().unwrap_or_default().to_owned();
    let rest = get(server, &reference.path(limit, Some(&chain.token))).await;
    judge(reference, &rest, (reference.revision(), chain.from, limit))
}

async fn play(namespace: Option<&'static str>, steps: Vec<Step>) -> Result<(), TestCaseError> {
    // The first object makes revision 0 unused: a list can't have revision 0, which means any revision.
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}});
    let server = Server::builder()
        .seed([other])
        .enforce_namespaces(false)
        .build();
    let mut reference = Reference {
        moments: vec![Moment::new(), Moment::new()],
        horizon: 0,
        namespace,
    };
    let mut chain = None;
    for (nth, step) in steps.into_iter().enumerate() {
        match step {
            Step::Put(key) => {
                let (namespace, name) = KEYS[key];
                let metadata = json!({"name": name, "namespace": namespace});
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"nth": nth.to_string()}});
                if reference
                    .moments
                    .last()
                    .is_some_and(|moment| moment.contains_key(&key))
                {
                    server.update(object).expect("the object exists");
                } else {
                    server.create(object).expect("the object does not exist");
                }
                reference.write(|moment, revision| {
                    moment.insert(key, revision);
                });
            }
            Step::Delete(key) => {
                let (namespace, name) = KEYS[key];
                let name = format!("{namespace}/{name}");
                if server.delete("v1", "configmaps", &name).is_ok() {
                    reference.write(|moment, _| {
                        moment
                            .remove(&key)
                            .expect("only an existing object is deleted");
                    });
                }
            }
            Step::Compact => {
                server.faults().expire_history();
                reference.horizon = reference.revision();
            }
            Step::Page(limit) => chain = page(&server, &reference, chain, limit).await?,
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_page_shows_the_revision_of_its_chain_until_it_expires(
        namespace in prop::option::of(prop::sample::select(vec!["a", "a-b", "b", "none"])),
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(namespace, steps))?;
    }
}
