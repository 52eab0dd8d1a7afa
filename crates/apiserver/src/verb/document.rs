//! Handles requests for paths that are not resources: discovery, OpenAPI, version and health.
//!
//! As in kube-apiserver, `/apis` and the paths of groups respond to any method, and the other paths only to
//! GET.

use std::sync::Arc;

use http::{StatusCode, header};
use serde_json::Value;

use super::openapi::gnostic;
use super::{Call, discovery, metrics, nowhere, openapi};
use crate::access::account_token;
use crate::body::Body;
use crate::definition::Definition;
use crate::kinds::Kind;
use crate::negotiate::{
    Encoding, Route, accepts_openapi, aggregated_discovery_in, document_in, openapi_v2_in,
};
use crate::published::Published;
use crate::reply::{Keep, Reply};
use crate::route::Destination;
use crate::status::ApiError;

/// Media type of the document at `/openapi/v2` in protobuf.
const OPENAPI_V2_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Parameters of the media type of aggregated discovery documents.
macro_rules! aggregated {
    ($media_type:literal) => {
        concat!(
            $media_type,
            ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
    };
}

impl Call {
    pub(super) fn answer_document(&self) -> Result<Reply, ApiError> {
        let registry = self.shared.registry();
        let kinds = registry.kinds();
        let (route, document) = match &self.destination {
            Destination::CoreVersions => {
                return self.answer_root(Route::Restful, true, &discovery::core_versions());
            }
            Destination::Groups => {
                return self.answer_root(Route::Handler, false, &discovery::groups(kinds));
            }
            Destination::Group(group) => (Route::Handler, discovery::one_group(kinds, group)),
            Destination::GroupVersion(group, version) => {
                (Route::Restful, discovery::resources(kinds, group, version))
            }
            Destination::Version => (Route::OnlyJson, Some(discovery::version())),
            Destination::OpenIdConfiguration | Destination::OpenIdKeys => {
                return self.answer_openid();
            }
            Destination::Root => return Ok(Reply::json(StatusCode::OK, &discovery::paths(kinds))),
            Destination::OpenApi => {
                let hash_of = |kind: &Kind| {
                    let published = self.openapi_of(&kind.group, &kind.version);
                    published.map(|published| published.hash.clone())
                };
                return Ok(Reply::json(StatusCode::OK, &openapi::index(kinds, hash_of)));
            }
            Destination::OpenApiOf(group, version) => {
                return Ok(match self.openapi_of(group, version) {
                    None => Reply::empty(StatusCode::NOT_FOUND),
                    Some(_) if !accepts_openapi(&self.headers) => {
                        Reply::empty(StatusCode::NOT_ACCEPTABLE)
                    }
                    Some(published) => self.unless_known(&published, json_of),
                });
            }
            Destination::OpenApiNowhere => return Ok(Reply::empty(StatusCode::NOT_FOUND)),
            Destination::Metrics => {
                let text = Reply::plain(StatusCode::OK, metrics::text(&self.shared));
                return Ok(Reply {
                    content_type: metrics::CONTENT_TYPE,
                    ..text
                });
            }
            Destination::Health => return Ok(Reply::plain(StatusCode::OK, "ok")),
            Destination::OpenApiV2 => return Ok(self.answer_openapi_v2()),
            Destination::Nowhere => return Ok(nowhere()),
            Destination::Malformed => {
                return Ok(Reply::plain(StatusCode::BAD_REQUEST, "400 Bad Request"));
            }
            Destination::Unknown | Destination::Resource(_) => {
                return Err(ApiError::no_such_path());
            }
        };
        let document = document.ok_or_else(ApiError::no_such_path)?;
        self.show_at(route, &document)
    }

    /// Returns the document about the issuer of the tokens of service accounts, or the key of the tokens.
    fn answer_openid(&self) -> Result<Reply, ApiError> {
        self.check_method(Route::OnlyJson)?;
        if matches!(self.destination, Destination::OpenIdConfiguration) {
            return Ok(Reply::json(StatusCode::OK, &account_token::configuration()));
        }
        let keys = self.shared.gate.issuer.keys();
        let keys = keys.map_err(|why| ApiError::internal(&why))?;
        Ok(Reply {
            content_type: "application/jwk-set+json",
            ..Reply::json(StatusCode::OK, &keys)
        })
    }

    /// Returns the response of `/openapi/v2`.
    fn answer_openapi_v2(&self) -> Reply {
        let Some(encoding) = openapi_v2_in(&self.headers) else {
            return Reply::empty(StatusCode::NOT_ACCEPTABLE);
        };
        let build = || {
            let registry = self.shared.registry();
            let all = openapi::all(registry.kinds(), |kind| self.schema_of(kind));
            Some(all.to_string())
        };
        let Some(published) = self.shared.openapi.current("v2", build) else {
            return Reply::empty(StatusCode::NOT_FOUND);
        };
        self.unless_known(&published, |published| match encoding {
            Encoding::Protobuf => {
                let encode = |json: &[u8]| {
                    let document = serde_json::from_slice(json);
                    gnostic::encode(&document.expect("the document was written as JSON"))
                };
                let body = Body::full(published.protobuf(encode));
                Reply {
                    content_type: OPENAPI_V2_CONTENT_TYPE,
                    ..Reply::new(StatusCode::OK, body, None)
                }
            }
            _ => json_of(published),
        })
    }

    /// Returns the OpenAPI document of a group and version.
    fn openapi_of(&self, group: &str, version: &str) -> Option<Arc<Published>> {
        let build = || {
            // Read after the number of changes, so that it is not an earlier state.
            let registry = self.shared.registry();
            let schema_of = |kind: &Kind| self.schema_of(kind);
            let document = openapi::document(registry.kinds(), (group, version), schema_of)?;
            Some(document.to_string())
        };
        let name = format!("v3/{group}/{version}");
        self.shared.openapi.current(&name, build)
    }

    /// Returns a document, or a 304 response if the client has the document.
    fn unless_known(&self, published: &Published, show: impl FnOnce(&Published) -> Reply) -> Reply {
        let known = self.headers.get(header::IF_NONE_MATCH);
        let known = known
            .and_then(|known| known.to_str().ok())
            .unwrap_or_default();
        let mut known = known.split(',').map(str::trim);
        let hash = published.hash.as_str();
        let etag = format!("\"{hash}\"");
        let is_known = known.any(|known| known == "*" || known.trim_start_matches("W/") == etag);
        // The document of version 2 has one URL.
        let is_versioned = !matches!(self.destination, Destination::OpenApiV2);
        let reply = if is_known {
            Reply::empty(StatusCode::NOT_MODIFIED)
        } else {
            show(published)
        };
        Reply {
            keep: Some(Keep {
                hash: hash.to_owned(),
                is_final: is_versioned && self.query.text("hash") == Some(hash),
            }),
            ..reply
        }
    }

    /// Returns the schema of a custom kind from its stored definition.
    fn schema_of(&self, kind: &Kind) -> Option<Value> {
        let definitions = self.shared.builtin.definitions.as_ref();
        let definitions = definitions.filter(|_| kind.definition.is_some())?;
        let state = self.shared.lock();
        let stored = state
            .storage
            .get(definitions.collection, &kind.group_resource());
        let stored = stored.cloned()?;
        drop(state);
        Definition::schema_of(&stored, &kind.version)
    }

    /// Returns the response of `/api` if `core` is true, and otherwise of `/apis`.
    fn answer_root(&self, route: Route, core: bool, plain: &Value) -> Result<Reply, ApiError> {
        let Some(encoding) = aggregated_discovery_in(&self.headers) else {
            return self.show_at(route, plain);
        };
        self.check_method(route)?;
        let document = discovery::aggregated(self.shared.registry().kinds(), core);
        let mut reply = Reply::document(StatusCode::OK, &document, encoding)?;
        reply.content_type = match encoding {
            Encoding::Json => aggregated!("application/json"),
            Encoding::Yaml => aggregated!("application/yaml"),
            Encoding::Protobuf => aggregated!("application/vnd.kubernetes.protobuf"),
        };
        Ok(reply)
    }

    fn show_at(&self, route: Route, document: &Value) -> Result<Reply, ApiError> {
        self.check_method(route)?;
        let encoding = document_in(&self.headers, route)?;
        Reply::document(StatusCode::OK, document, encoding)
    }

    fn check_method(&self, route: Route) -> Result<(), ApiError> {
        match route {
            Route::Restful | Route::OnlyJson if !self.is_get => Err(ApiError::method_not_allowed()),
            _ => Ok(()),
        }
    }
}

fn json_of(published: &Published) -> Reply {
    Reply::new(StatusCode::OK, Body::full(published.json.clone()), None)
}
