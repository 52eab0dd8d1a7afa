//! Rejects requests that need a conversion webhook, which this server does not call.

use std::sync::Arc;

use crate::kinds::Kind;
use crate::resource::Resource;
use crate::schema::Model;
use crate::status::ApiError;

impl Resource {
    /// Checks that objects of this resource can be stored without a webhook that converts them.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if they are stored in another version and the definition has such a webhook.
    pub(crate) fn check_writable(&self) -> Result<(), ApiError> {
        let Some(model) = &self.model else {
            return Ok(());
        };
        self.check_conversion(&self.kind.version, model.stored_version())
    }

    /// Returns the 500 error that Kubernetes returns if the webhook can't be called, if the conversion needs it.
    pub(crate) fn check_conversion(&self, from: &str, to: &str) -> Result<(), ApiError> {
        let needs_webhook = |model: &Arc<Model>| model.needs_webhook();
        if from == to || !self.model.as_ref().is_some_and(needs_webhook) {
            return Ok(());
        }
        let Kind { group, kind, .. } = &*self.kind;
        let message = format!(
            "conversion webhook for {group}/{from}, Kind={kind} failed: the embedded server calls no webhook to convert the object to {group}/{to}"
        );
        Err(ApiError::new(500, "", message))
    }
}
