//! Sends read requests to a server that can be killed at any time.

use anyhow::{Context as _, Result};
use http::Request;
use kube_client::{Client, Error};
use serde_json::Value;

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    /// The server did not respond, or only in part, because it was killed.
    Lost,
    /// The server does not have the object, or does not serve the kind.
    NotFound,
    Found(T),
}

impl<T> Answer<T> {
    /// Converts the result of a request.
    ///
    /// # Errors
    /// Returns the server's error, if the error is not 404.
    pub(crate) fn of(result: Result<T, Error>) -> Result<Self> {
        match result {
            Ok(found) => Ok(Self::Found(found)),
            Err(Error::Api(status)) if status.code == 404 => Ok(Self::NotFound),
            Err(refusal @ Error::Api(_)) => Err(refusal.into()),
            Err(_) => Ok(Self::Lost),
        }
    }
}

/// Sends a GET request.
///
/// # Errors
/// Returns the server's error, if the error is not 404.
pub(crate) async fn get(client: &Client, uri: &str) -> Result<Answer<Value>> {
    let request = Request::builder().uri(uri).body(Vec::new())?;
    let answer = Answer::of(client.request(request).await);
    answer.with_context(|| format!("GET {uri} was refused"))
}
