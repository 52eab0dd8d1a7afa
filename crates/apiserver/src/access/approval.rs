//! Checks who may approve and deny certificate requests.
//!
//! Guarantees: the check and its error are those of the admission plugin `CertificateApproval` in Kubernetes.

use super::attributes::Attributes;
use super::{Gate, User};
use crate::kinds::Kind;
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::ApiError;

/// The user of a write of the subresource `approval`.
#[derive(Clone, Copy)]
pub(crate) struct Approver<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) user: &'a User,
    /// The kind of certificate requests.
    pub(crate) kind: &'a Kind,
}

impl std::fmt::Debug for Approver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approver").finish_non_exhaustive()
    }
}

impl Approver<'_> {
    /// Checks that the user may approve requests for the signer of a stored certificate request.
    ///
    /// # Errors
    ///
    /// Returns a 403 error if the user may not.
    pub(crate) fn check(&self, request: &Object) -> Result<(), ApiError> {
        let spec = request.part("spec");
        let signer = spec["signerName"].as_str().unwrap_or_default();
        let domain = signer.split('/').next().unwrap_or_default();
        if self.may_approve(signer) || self.may_approve(&format!("{domain}/*")) {
            return Ok(());
        }
        let signer = Quoted(signer);
        let why = format!("user not permitted to approve requests with signerName {signer}");
        Err(ApiError::forbidden(self.kind, request.text("name"), &why))
    }

    fn may_approve(&self, signer: &str) -> bool {
        let attributes = Attributes {
            verb: "approve".to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name: signer.to_owned(),
            ..Attributes::default()
        };
        let policy = self.gate.policy.lock();
        let decision = self.gate.decide(&policy, self.user, &attributes);
        decision.is_allowed
    }
}
