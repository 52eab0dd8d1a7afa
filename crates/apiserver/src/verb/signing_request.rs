//! Records the user who creates a `CertificateSigningRequest` in its `spec`, as Kubernetes does.

use serde_json::Value;

use super::Call;
use crate::access::review::info;
use crate::kinds::Kind;
use crate::object::Object;
use crate::strategy::signing_request;

impl Call {
    /// Replaces the user in a new certificate request by the user of this request.
    ///
    /// A server without access control has no users, and keeps those that clients send.
    pub(super) fn record_user(&self, kind: &Kind, object: &mut Object) {
        if !signing_request::is_kind(kind)
            || (self.user.is_anonymous() && self.shared.gate.is_open())
        {
            return;
        }
        let mut spec = object.part("spec");
        let info = info(&self.user);
        for member in ["username", "uid", "groups", "extra"] {
            spec[member] = info[member].clone();
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|_, value| *value != Value::Null);
        }
        object.set("spec", Some(spec));
    }
}
