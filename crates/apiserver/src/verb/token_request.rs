//! Handles POST on `serviceaccounts/token`: issues a token of the account.
//!
//! Guarantees: the checks, their order and the errors are those of `pkg/registry/core/serviceaccount/storage/token.go`
//! in Kubernetes. The token is in the response only.

use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Call;
use super::write::Subject;
use crate::access::account_token::{Claims, ISSUER, Reference};
use crate::kinds::Subresource;
use crate::object::Object;
use crate::quote::Quoted;
use crate::reply::Reply;
use crate::route::Target;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::strategy::Part;

const GROUP: &str = "authentication.k8s.io";

/// Duration of a token in seconds if the request has none (`SetDefaults_TokenRequestSpec`).
const DEFAULT_SECONDS: i64 = 60 * 60;
/// Shortest duration of a token in seconds (`MinTokenAgeSec`).
const MIN_SECONDS: i64 = 10 * 60;
/// Longest duration of a token in seconds.
const MAX_SECONDS: i64 = 1 << 32;
/// The duration that a kubelet asks for, which is extended (`WarnOnlyBoundTokenExpirationSeconds`).
const WARN_SECONDS: i64 = 60 * 60 + 7;
/// The extended duration (`ExpirationExtensionSeconds`).
const EXTENDED_SECONDS: i64 = 24 * 365 * 60 * 60;

/// The objects to which a token is bound.
#[derive(Default)]
struct Bound {
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

impl Call {
    pub(super) fn request_token(
        &self,
        target: &Target,
        served: &Subresource,
    ) -> Result<Reply, ApiError> {
        self.how(Part::Main)?;
        let mut request = self.sent_to(served)?;
        let subject = Self::subject(target)?;
        check_place(subject, &request)?;
        let account = reference(&subject.read(&self.shared)?.1);
        let uid = request["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && uid != account.uid {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid
            );
            return Err(conflict((GROUP, "TokenRequest"), subject.name, &why));
        }
        let now = self.shared.settings.clock.now();
        let namespace = subject.namespace.unwrap_or_default();
        request["metadata"] = json!({
            "name": account.name,
            "namespace": namespace,
            "uid": account.uid,
            "creationTimestamp": now.to_string(),
        });
        let spec = &mut request["spec"];
        let seconds = spec["expirationSeconds"]
            .as_i64()
            .unwrap_or(DEFAULT_SECONDS);
        let audiences = spec["audiences"].as_array().into_iter().flatten();
        let audiences = audiences.filter_map(Value::as_str).map(str::to_owned);
        let mut audiences: Vec<String> = audiences.collect();
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        check_seconds(seconds)?;
        let reference = spec["boundObjectRef"].clone();
        let bound = bound(&self.shared, subject, &reference)?;
        *spec = json!({
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": reference,
        });
        let is_own = audiences.iter().all(|audience| audience == ISSUER);
        let is_extended = bound.pod.is_some() && seconds == WARN_SECONDS && is_own;
        let after = |seconds| now + SignedDuration::from_secs(seconds);
        let claims = Claims {
            namespace: namespace.to_owned(),
            account,
            pod: bound.pod,
            secret: bound.secret,
            node: bound.node,
            audiences,
            id: self.shared.lock().new_uid(),
            issued: now,
            expires: after(if is_extended {
                EXTENDED_SECONDS
            } else {
                seconds
            }),
            warn_after: is_extended.then(|| after(seconds)),
        };
        let token = self.shared.gate.issuer.issue(&claims);
        let token =
            token.map_err(|why| ApiError::internal(&format!("failed to generate token: {why}")))?;
        request["status"] =
            json!({"token": token, "expirationTimestamp": after(seconds).to_string()});
        request["kind"] = json!("TokenRequest");
        request["apiVersion"] = json!("authentication.k8s.io/v1");
        self.show_document(target, StatusCode::CREATED, &request)
    }
}

/// Checks that the name and the namespace in the request are empty or those of the path.
fn check_place(subject: Subject<'_>, request: &Value) -> Result<(), ApiError> {
    let text = |member: &str| request["metadata"][member].as_str().unwrap_or_default();
    subject.check_namespace(text("namespace"))?;
    let name = text("name");
    if name.is_empty() || name == subject.name {
        return Ok(());
    }
    let why = "must match the service account name if specified";
    let error = FieldError::invalid("metadata.name", Quoted(name), why);
    Err(ApiError::invalid_kind(
        GROUP,
        "TokenRequest",
        subject.name,
        &[error],
    ))
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let why = if seconds < MIN_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAX_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(ApiError::invalid_kind(GROUP, "TokenRequest", "", &[error]))
}

/// Returns the objects to which a token is bound: that of the request, and the node of a pod.
fn bound(shared: &Shared, subject: Subject<'_>, wanted: &Value) -> Result<Bound, ApiError> {
    let mut bound = Bound::default();
    if !wanted.is_object() {
        return Ok(bound);
    }
    let text = |member: &str| wanted[member].as_str().unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let found = match (group, kind) {
        ("", "Pod") => {
            let pod = read(shared, "pods", subject.namespace, name)?;
            let spec = pod.part("spec");
            if spec["serviceAccountName"].as_str().unwrap_or_default() != subject.name {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                    Quoted(subject.name)
                )));
            }
            if let Some(node) = spec["nodeName"].as_str().filter(|node| !node.is_empty()) {
                // A token can name a node that does not exist.
                let unknown = Reference {
                    name: node.to_owned(),
                    uid: String::new(),
                };
                let node = read(shared, "nodes", None, node);
                bound.node = Some(node.map_or(unknown, |node| reference(&node)));
            }
            &*bound.pod.insert(reference(&pod))
        }
        ("", "Node") => {
            let node = read(shared, "nodes", None, name)?;
            &*bound.node.insert(reference(&node))
        }
        ("", "Secret") => {
            let secret = read(shared, "secrets", subject.namespace, name)?;
            &*bound.secret.insert(reference(&secret))
        }
        _ => {
            let separator = if version.contains('/') { "" } else { "/" };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {separator}{version}, Kind={kind}"
            )));
        }
    };
    let uid = text("uid");
    if !uid.is_empty() && uid != found.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(conflict(("", kind), name, &why));
    }
    Ok(bound)
}

/// Reads an object of the core group.
fn read(
    shared: &Shared,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Object, ApiError> {
    let registry = shared.registry();
    let resource = registry.by_path("", "v1", plural);
    let subject = Subject {
        resource: resource.ok_or_else(ApiError::no_such_path)?,
        namespace,
        name,
    };
    Ok(subject.read(shared)?.1)
}

fn reference(object: &Object) -> Reference {
    Reference {
        name: object.text("name").to_owned(),
        uid: object.text("uid").to_owned(),
    }
}

fn conflict((group, kind): (&str, &str), name: &str, why: &str) -> ApiError {
    let dot = if group.is_empty() { "" } else { "." };
    let message = format!(
        "Operation cannot be fulfilled on {kind}{dot}{group} {}: {why}",
        Quoted(name)
    );
    ApiError::new(409, "Conflict", message).about_resource(group, kind, name)
}
