//! Handles requests for paths that are not resources: discovery, OpenAPI, version and health.
//!
//! As in kube-apiserver, `/apis` and the paths of groups respond to any method, and the other paths only to
//! GET.

use http::StatusCode;
use serde_json::Value;

use super::{Call, discovery, nowhere, openapi};
use crate::definition::Definition;
use crate::kinds::Kind;
use crate::negotiate::{Encoding, Route, accepts_openapi, aggregated_discovery_in, document_in};
use crate::reply::Reply;
use crate::route::Destination;
use crate::status::ApiError;

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
            Destination::Root => return Ok(Reply::json(StatusCode::OK, &discovery::paths(kinds))),
            Destination::OpenApi => {
                return Ok(Reply::json(StatusCode::OK, &openapi::index(kinds)));
            }
            Destination::OpenApiOf(group, version) => {
                let schema_of = |kind: &Kind| self.schema_of(kind);
                return Ok(
                    match openapi::document(kinds, (group, version), schema_of) {
                        None => Reply::empty(StatusCode::NOT_FOUND),
                        Some(_) if !accepts_openapi(&self.headers) => {
                            Reply::empty(StatusCode::NOT_ACCEPTABLE)
                        }
                        Some(document) => Reply::json(StatusCode::OK, &document),
                    },
                );
            }
            Destination::OpenApiNowhere => return Ok(Reply::empty(StatusCode::NOT_FOUND)),
            Destination::Health => return Ok(Reply::plain(StatusCode::OK, "ok")),
            Destination::OpenApiV2 if !accepts_openapi(&self.headers) => {
                return Ok(Reply::empty(StatusCode::NOT_ACCEPTABLE));
            }
            Destination::Nowhere | Destination::OpenApiV2 => {
                return Ok(nowhere());
            }
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
