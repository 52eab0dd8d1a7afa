//! Builds the error responses and connection resets that faults send instead of executing a request.
//!
//! Guarantees: an error response has the wording, headers and format of Kubernetes' error response.

use std::io;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::body::{Body, BoxError};
use crate::fault::{ErrorResponse, Form, Planned, Verdict};
use crate::reply::Reply;
use crate::request_log::LoggedRequest;
use crate::shared::Shared;
use crate::status::ApiError;

/// Default `Retry-After` in seconds of a plain-text error response.
///
/// The value is `retryAfter` in Kubernetes' `maxinflight.go`.
const PLAIN_RETRY_AFTER: u32 = 1;

impl Verdict {
    /// Returns the response, if any, that a fault sends instead of executing the request.
    ///
    /// # Errors
    ///
    /// Returns an error if a fault resets the connection.
    pub(crate) fn answer(
        &self,
        shared: &Shared,
        request: &Arc<LoggedRequest>,
    ) -> Result<Option<Result<Reply, ApiError>>, BoxError> {
        let Some(planned) = self.answer else {
            return Ok(None);
        };
        Ok(Some(match planned {
            Planned::ErrorResponse(refusal) => refusal.reply(shared),
            Planned::NoStreaming => match request.options.check_watch(false) {
                Err(refused) => Err(refused),
                Ok(()) => Err(ApiError::of_code(422)),
            },
            Planned::Reset => {
                let reset = io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the connection was reset by a fault",
                );
                return Err(reset.into());
            }
        }))
    }

    /// Adds headers such as `Retry-After` to a fault's error response.
    pub(crate) fn mark(&self, response: &mut Response<Body>) {
        let Some(Planned::ErrorResponse(refusal)) = self.answer else {
            return;
        };
        let headers = response.headers_mut();
        let plain = refusal.form == Form::Plain;
        if plain {
            // Go's `http.Error` adds this header.
            let nosniff = HeaderValue::from_static("nosniff");
            headers.insert(HeaderName::from_static("x-content-type-options"), nosniff);
        }
        let default = plain.then_some(PLAIN_RETRY_AFTER);
        if let Some(seconds) = refusal.retry_after.or(default) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

impl ErrorResponse {
    fn reply(&self, shared: &Shared) -> Result<Reply, ApiError> {
        let error = match self.form {
            Form::TooLarge => {
                let current = shared.lock().storage.revision();
                ApiError::revision_too_large(current + 1, current)
            }
            Form::Status | Form::Plain => ApiError::of_code(self.code),
        };
        if self.form != Form::Plain {
            return Err(match self.retry_after {
                Some(seconds) => error.retry_in(seconds),
                None => error,
            });
        }
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(Reply::plain(code, format!("{error}\n")))
    }
}
