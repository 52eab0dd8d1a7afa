//! Looks up kinds on the server by any of the names that `kubectl` accepts.
//!
//! The server describes its kinds in two aggregated discovery documents: `/api` for the core group, and
//! `/apis` for all other groups. A look-up requests only the documents that can contain the name. This module
//! caches nothing.

use std::{collections::BTreeSet, time::Duration};

use kube_client::client::Body;
use kube_core::{
    ApiResource, GroupVersionKind,
    discovery::v2::{ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscovery, APIResourceDiscovery},
};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    json,
    limits::{DISCOVERY_BYTES, PARTS},
    transport::{
        self, Class,
        client::{ClientSource, answer, read_all},
    },
};

/// Maximum duration of a discovery request, as in the API server's default `--request-timeout`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

const CORE: &str = "/api";

const GROUPS: &str = "/apis";

/// A kind as the server's discovery document describes it: its names, its scope and its verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovered {
    /// The group, version, kind and plural name. If the looked-up name contains no version, the version is
    /// the most preferred one among the versions of the group that contain the kind.
    pub resource: ApiResource,
    /// Whether the kind is namespaced; `false` for a cluster-scoped kind.
    pub namespaced: bool,
    /// The verbs that the server supports for the kind, such as `list` and `watch`.
    pub verbs: Vec<String>,
    /// The singular name in lower case, such as `pod`; empty if the server does not report one.
    pub singular: String,
    /// The short names that `kubectl` accepts, such as `po`.
    pub short_names: Vec<String>,
}

impl Discovered {
    /// Returns whether the server supports this verb for the kind itself, not for its subresources.
    pub fn serves(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }

    fn is_named(&self, name: &str) -> bool {
        [&self.resource.plural, &self.singular, &self.resource.kind]
            .into_iter()
            .any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_short(&self, name: &str) -> bool {
        let mut short_names = self.short_names.iter();
        short_names.any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// The reason why a discovery look-up failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// The server has no kind with the requested name.
    #[error("the server has no kind named {name:?}{}", stale_groups_note(.stale))]
    Unknown {
        /// The requested name.
        name: String,
        /// API versions whose aggregated API server does not respond, for example `v1beta1.metrics.k8s.io`.
        /// The requested kind may exist in one of these versions.
        stale: Vec<String>,
    },
    /// The request failed, or the response is not an aggregated discovery document.
    #[error("the discovery of the server's kinds failed")]
    Server(#[source] transport::Error),
}

fn stale_groups_note(stale: &[String]) -> String {
    match stale {
        [] => String::new(),
        stale => format!(
            "; it may be in {}, whose API server does not respond",
            stale.join(", ")
        ),
    }
}

/// Requests discovery documents until one contains a kind with this name.
///
/// See [`SharedInformerFactory::discover`](super::SharedInformerFactory::discover) for the precedence of
/// names.
pub(super) async fn discover(
    client: &dyn ClientSource,
    name: &str,
) -> Result<Discovered, DiscoverError> {
    let wanted = Wanted::all(name);
    let mut served = Catalogue::default();
    for (path, is_core) in [(CORE, true), (GROUPS, false)] {
        let may_be_there = |wanted: &Wanted<'_>| {
            let is_core_group = wanted.group.map(str::is_empty);
            is_core_group.is_none_or(|of_core| of_core == is_core)
        };
        if !wanted.iter().any(may_be_there) {
            continue;
        }
        served.read(client, path).await?;
        // The core group has precedence over other groups, and any full name over a short name.
        if let Some(found) = served.find(&wanted, Discovered::is_named) {
            return Ok(found);
        }
    }
    let found = served.find(&wanted, Discovered::is_short);
    found.ok_or_else(|| DiscoverError::Unknown {
        name: name.to_owned(),
        stale: served.stale,
    })
}

/// Returns every kind that the server serves, each only in its most preferred version.
pub(super) async fn discover_all(
    client: &dyn ClientSource,
) -> Result<Vec<Discovered>, DiscoverError> {
    let mut served = Catalogue::default();
    served.read(client, CORE).await?;
    served.read(client, GROUPS).await?;
    let mut seen = BTreeSet::new();
    let mut kinds = served.kinds;
    kinds.retain(|Discovered { resource, .. }| {
        seen.insert((resource.group.clone(), resource.plural.clone()))
    });
    Ok(kinds)
}

/// One interpretation of a requested name. For example, `pods.v1.` can mean version `v1` of the core group.
struct Wanted<'a> {
    resource: &'a str,
    version: Option<&'a str>,
    group: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Returns the possible interpretations of a requested name, in order of precedence.
    ///
    /// For example, `deployments.v1.apps` has the version `v1` and the group `apps`, or only the group
    /// `v1.apps`.
    fn all(name: &'a str) -> Vec<Self> {
        if name.is_empty() || name.starts_with('.') {
            return Vec::new();
        }
        let wanted = |resource, version, group| Self {
            resource,
            version,
            group,
        };
        let Some((resource, rest)) = name.split_once('.') else {
            return vec![wanted(name, None, None)];
        };
        let versioned = rest
            .split_once('.')
            .map(|(version, group)| wanted(resource, Some(version), Some(group)));
        let grouped = wanted(resource, None, Some(rest));
        versioned.into_iter().chain([grouped]).collect()
    }

    fn allows(&self, ApiResource { group, version, .. }: &ApiResource) -> bool {
        self.version.is_none_or(|wanted| wanted == version)
            && self.group.is_none_or(|wanted| wanted == group)
    }
}

/// Kinds from discovery documents, in the server's order of groups and with preferred versions first.
#[derive(Default)]
struct Catalogue {
    kinds: Vec<Discovered>,
    stale: Vec<String>,
}

/// A discovery response. The field `kind` shows whether the server supports aggregated discovery.
#[derive(Deserialize)]
struct Document {
    kind: String,
    #[serde(default)]
    items: Vec<APIGroupDiscovery>,
}

impl Catalogue {
    async fn read(&mut self, client: &dyn ClientSource, path: &str) -> Result<(), DiscoverError> {
        let body = fetch(client, path).await.map_err(DiscoverError::Server)?;
        self.add(&body).map_err(DiscoverError::Server)
    }

    fn add(&mut self, body: &[u8]) -> Result<(), transport::Error> {
        let protocol = |what| transport::Error::new(Class::Protocol, what);
        if body.len() > PARTS && json::parts(body) > PARTS {
            let what = format!("the discovery response has more than {PARTS} arrays and maps");
            return Err(transport::Error::new(Class::Protocol, what));
        }
        let document: Document = serde_json::from_slice(body)
            .map_err(|_| protocol("the discovery response is not a discovery document"))?;
        if document.kind != "APIGroupDiscoveryList" {
            return Err(protocol(
                "the server has no aggregated discovery; it needs Kubernetes 1.27 or later",
            ));
        }
        for group in document.items {
            let name = group.metadata.and_then(|metadata| metadata.name);
            let name = name.unwrap_or_default();
            for served in group.versions {
                let version = served.version.unwrap_or_default();
                if served.freshness.as_deref() == Some("Stale") {
                    self.stale.push(qualified(&version, &name));
                }
                let kinds = served.resources.into_iter();
                let kinds = kinds.filter_map(|kind| discovered(&name, &version, kind));
                self.kinds.extend(kinds);
            }
        }
        Ok(())
    }

    fn find(
        &self,
        wanted: &[Wanted<'_>],
        matches: fn(&Discovered, &str) -> bool,
    ) -> Option<Discovered> {
        let found = wanted.iter().find_map(|wanted| {
            let mut kinds = self.kinds.iter();
            kinds.find(|kind| wanted.allows(&kind.resource) && matches(kind, wanted.resource))
        });
        found.cloned()
    }
}

fn discovered(group: &str, version: &str, served: APIResourceDiscovery) -> Option<Discovered> {
    let (plural, kind) = (served.resource?, served.response_kind?.kind?);
    let gvk = GroupVersionKind::gvk(group, version, &kind);
    Some(Discovered {
        resource: ApiResource::from_gvk_with_plural(&gvk, &plural),
        namespaced: served.scope.as_deref() == Some("Namespaced"),
        verbs: served.verbs,
        singular: served.singular_resource.unwrap_or_default(),
        short_names: served.short_names,
    })
}

async fn fetch(client: &dyn ClientSource, path: &str) -> Result<Vec<u8>, transport::Error> {
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, ACCEPT_AGGREGATED_DISCOVERY_V2)
        .body(Body::empty())
        .map_err(|error| {
            transport::Error::new(Class::Invalid, "the discovery request can't be built")
                .with_source(error)
        })?;
    let asked = async {
        let client = client.client().await?;
        let response = answer(&client, request).await?;
        read_all(response, DISCOVERY_BYTES, "the discovery response").await
    };
    let late = |_| transport::Error::new(Class::Timeout, "the server did not respond in time");
    let answered = timeout(REQUEST_TIMEOUT, asked)
        .await
        .map_err(late)
        .flatten();
    answered.inspect_err(|error| client.failed(error))
}

/// Returns a plural name with its group, such as `deployments.apps`, or `pods` for the core group.
pub(super) fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

#[cfg(test)]
mod tests;
