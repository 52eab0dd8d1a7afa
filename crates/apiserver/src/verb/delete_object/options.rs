//! Parses the `DeleteOptions` of a deletion, and checks the preconditions in these options.
//!
//! Guarantees:
//! - malformed or contradictory options are rejected with Kubernetes' messages;
//! - a negative grace period becomes one second, as in Kubernetes.

use serde_json::Value;

use crate::garbage::Policy;
use crate::object::Object;
use crate::status::{ApiError, FieldError};
use crate::strategy::GarbageCollectionPolicy;
use crate::verb::write::Subject;

/// The parsed `DeleteOptions` of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(super) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    propagation: Option<Policy>,
    pub(crate) dry_run: bool,
    /// The deprecated option `orphanDependents`.
    orphan_dependents: Option<bool>,
}

impl DeleteOptions {
    /// Returns options with the precondition `uid`.
    pub(crate) fn of_uid(uid: &str) -> DeleteOptions {
        DeleteOptions {
            uid: Some(uid.to_owned()),
            ..DeleteOptions::default()
        }
    }

    /// Returns options with the precondition `uid` and the propagation policy `Background`.
    pub(crate) fn in_background(uid: &str) -> DeleteOptions {
        DeleteOptions {
            propagation: Some(Policy::Background),
            ..DeleteOptions::of_uid(uid)
        }
    }

    /// Returns options with the preconditions `uid` and `revision`, and with a propagation policy.
    pub(crate) fn of_state(uid: &str, revision: u64, policy: Policy) -> DeleteOptions {
        DeleteOptions {
            revision: Some(revision.to_string()),
            propagation: Some(policy),
            ..DeleteOptions::of_uid(uid)
        }
    }

    /// Parses the options from JSON: a request body, or the query parameters.
    ///
    /// # Errors
    ///
    /// Returns a 400 error for malformed options, and a 422 error for contradictory or unsupported options.
    pub(crate) fn parse(options: &Value) -> Result<DeleteOptions, ApiError> {
        check_kind(options)?;
        let mut errors = Vec::new();
        let orphan_dependents = typed(options, "orphanDependents", "bool", Value::as_bool)?;
        let policy = typed(options, "propagationPolicy", "v1.DeletionPropagation", text)?;
        if let Some(policy) = policy.as_ref().filter(|_| orphan_dependents.is_some()) {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                format!("{policy:?}"),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let propagation = match policy.as_deref() {
            None => None,
            Some("Background") => Some(Policy::Background),
            Some("Foreground") => Some(Policy::Foreground),
            Some("Orphan") => Some(Policy::Orphan),
            Some(other) => {
                errors.push(FieldError::unsupported(
                    "propagationPolicy",
                    other,
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
        };
        let stages: Vec<&str> = match &options["dryRun"] {
            Value::Array(stages) => stages.iter().filter_map(Value::as_str).collect(),
            stage => stage.as_str().into_iter().collect(),
        };
        if stages.iter().any(|stage| *stage != "All") {
            errors.push(FieldError::unsupported(
                "dryRun",
                stages.as_slice(),
                &["All"],
            ));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("DeleteOptions", &errors));
        }
        let by_flag = orphan_dependents.map(|orphan| {
            if orphan {
                Policy::Orphan
            } else {
                Policy::Background
            }
        });
        let seconds = typed(options, "gracePeriodSeconds", "int64", Value::as_i64)?;
        Ok(DeleteOptions {
            grace_seconds: seconds.map(|seconds| if seconds < 0 { 1 } else { seconds }),
            uid: text(&options["preconditions"]["uid"]),
            revision: text(&options["preconditions"]["resourceVersion"]),
            propagation: propagation.or(by_flag),
            dry_run: !stages.is_empty(),
            orphan_dependents,
        })
    }

    /// Returns the status code of the response to a DELETE that marks the object without removing it.
    pub(crate) fn marked_code(&self) -> u16 {
        if self.orphan_dependents == Some(false) {
            202
        } else {
            200
        }
    }

    /// Checks the preconditions on uid and revision against the stored object.
    ///
    /// # Errors
    ///
    /// Returns a 409 error if a precondition does not hold.
    pub(in crate::verb) fn check(
        &self,
        subject: Subject<'_>,
        object: &Object,
        revision: u64,
    ) -> Result<(), ApiError> {
        let kind = &subject.resource.kind;
        let uid = object.text("uid");
        if let Some(wanted) = self.uid.as_ref().filter(|wanted| *wanted != uid) {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            );
            return Err(ApiError::precondition(kind, subject.name, &why));
        }
        let revision = revision.to_string();
        if let Some(wanted) = self.revision.as_ref().filter(|wanted| **wanted != revision) {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            );
            return Err(ApiError::precondition(kind, subject.name, &why));
        }
        Ok(())
    }

    /// Returns whether the options select a policy for the dependents.
    pub(crate) fn has_policy(&self) -> bool {
        self.propagation.is_some()
    }

    /// Returns the finalizers that `object` has after it is marked for deletion.
    ///
    /// `default` is the policy of the object's kind, which the options and the object's finalizers override.
    pub(crate) fn finalizers(
        &self,
        object: &Object,
        default: GarbageCollectionPolicy,
    ) -> Vec<String> {
        const FOREGROUND: &str = "foregroundDeletion";
        const ORPHAN: &str = "orphan";
        let (mut own, mut others) = (None, Vec::new());
        for finalizer in object.finalizers() {
            match finalizer {
                FOREGROUND => own = own.or(Some(Policy::Foreground)),
                ORPHAN => own = own.or(Some(Policy::Orphan)),
                other => others.push(other.to_owned()),
            }
        }
        let policy = match default {
            GarbageCollectionPolicy::Unsupported => None,
            GarbageCollectionPolicy::DeleteDependents => self.propagation.or(own),
            GarbageCollectionPolicy::OrphanDependents => {
                self.propagation.or(own).or(Some(Policy::Orphan))
            }
        };
        let added = match policy {
            None | Some(Policy::Background) => None,
            Some(Policy::Foreground) => Some(FOREGROUND),
            Some(Policy::Orphan) => Some(ORPHAN),
        };
        let before = object.finalizers();
        // As in Kubernetes, an equal set of finalizers keeps its order.
        if before.len() == others.len() + usize::from(added.is_some())
            && added.is_none_or(|added| before.contains(&added))
        {
            return before.into_iter().map(str::to_owned).collect();
        }
        others.extend(added.map(str::to_owned));
        others
    }
}

/// Checks that the `kind` in the options, if present, is `DeleteOptions`.
fn check_kind(options: &Value) -> Result<(), ApiError> {
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => Ok(()),
        Some(kind @ ("CreateOptions" | "UpdateOptions")) => Err(ApiError::bad_request(format!(
            "converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"
        ))),
        Some(kind) => Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            options["apiVersion"].as_str().unwrap_or_default()
        ))),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Reads the optional value of `member` with `read`. `expected` is the Go type for the error message.
///
/// # Errors
///
/// Returns a 400 error if `read` does not accept the value.
fn typed<T>(
    options: &Value,
    member: &str,
    expected: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let sent = match &options[member] {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        sent => sent,
    };
    if let Some(value) = read(sent) {
        return Ok(Some(value));
    }
    let found = match sent {
        Value::String(_) => "string".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        _ => "object".to_owned(),
    };
    let message = format!(
        "json: cannot unmarshal {found} into Go struct field DeleteOptions.{member} of type {expected}"
    );
    Err(ApiError::bad_request(message))
}
