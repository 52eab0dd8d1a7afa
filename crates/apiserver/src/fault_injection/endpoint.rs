//! Serves the HTTP endpoint through which clients read and change the fault plan.
//!
//! Guarantees:
//! - the endpoint is off unless the builder enables it;
//! - if a plan in a request can't be parsed, none of its statements takes effect.

use std::sync::Arc;

use http::{Method, StatusCode};

use super::Faults;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::status::ApiError;

/// URL path of the endpoint at which clients read and change the fault plan.
pub(crate) const PATH: &str = "/faults";

/// Handles a request that reads (GET), extends (POST) or clears (DELETE) the fault plan.
///
/// # Errors
///
/// Returns a 400 error for an invalid plan, and a 405 error for any other method.
pub(crate) fn serve_plan(
    shared: &Arc<Shared>,
    method: &Method,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let faults = Faults::new(Arc::clone(shared));
    match *method {
        Method::GET => {}
        Method::POST => {
            let plan = std::str::from_utf8(body)
                .map_err(|_| ApiError::bad_request("a fault plan is UTF-8 text"))?;
            faults
                .inject(plan)
                .map_err(|error| ApiError::bad_request(error.to_string()))?;
        }
        Method::DELETE => faults.clear(),
        _ => {
            let message =
                "a fault plan is read with GET, extended with POST and cleared with DELETE";
            return Err(ApiError::new(405, "MethodNotAllowed", message));
        }
    }
    Ok(Reply::plain(StatusCode::OK, faults.plan()))
}
