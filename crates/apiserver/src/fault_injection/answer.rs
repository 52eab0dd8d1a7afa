//! What is decided about a request before it is done.
//!
//! Guarantees: a refusal looks as the same refusal of Kubernetes does, in words, headers and form; the request log shows it.

use std::io;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::body::{Body, BoxError};
use crate::fault::{Form, Planned, Refusal, Verdict};
use crate::reply::Reply;
use crate::request_log::LoggedRequest;
use crate::shared::Shared;
use crate::status::ApiError;

/// What flow control says to wait if the plan does not (`retryAfter` in `maxinflight.go`).
const PLAIN_RETRY_AFTER: u32 = 1;

impl Verdict {
    /// The answer in the stead of the real one, if there is one.
    ///
    /// # Errors
    ///
    /// If the connection is to be reset.
    pub(crate) fn answer(
        &self,
        shared: &Shared,
        request: &Arc<LoggedRequest>,
    ) -> Result<Option<Result<Reply, ApiError>>, BoxError> {
        let Some(planned) = self.answer else {
            return Ok(None);
        };
        Ok(Some(match planned {
            Planned::Refusal(refusal) => refusal.reply(shared),
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

    /// Adds the headers that no `Status` stands for.
    pub(crate) fn mark(&self, response: &mut Response<Body>) {
        let Some(Planned::Refusal(refusal)) = self.answer else {
            return;
        };
        let headers = response.headers_mut();
        let plain = refusal.form == Form::Plain;
        if plain {
            // What Go's http.Error adds.
            let nosniff = HeaderValue::from_static("nosniff");
            headers.insert(HeaderName::from_static("x-content-type-options"), nosniff);
        }
        let default = plain.then_some(PLAIN_RETRY_AFTER);
        if let Some(seconds) = refusal.retry_after.or(default) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

impl Refusal {
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
