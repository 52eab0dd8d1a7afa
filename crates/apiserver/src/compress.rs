//! Compresses responses with gzip, as a Kubernetes API server of version 1.36 does.
//!
//! Guarantees:
//! - A response longer than [`THRESHOLD_BYTES`] is compressed if the request path names a resource and
//!   `Accept-Encoding` contains `gzip` without a `q` value. The response to a watch is never compressed.
//! - A response is compressed while the client reads it. At most [`THRESHOLD_BYTES`] and one chunk of it are
//!   in memory.
//! - Equal responses result in equal compressed bytes.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_core::Stream;
use futures_util::stream;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Response};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::body::{Body, BoxError};

/// Length in bytes up to which a response is not compressed, like `defaultGzipThresholdBytes` in Kubernetes.
const THRESHOLD_BYTES: usize = 128 * 1024;

/// The fastest compression level, like `defaultGzipContentEncodingLevel` in Kubernetes.
const LEVEL: u32 = 1;

/// A gzip encoder, and the chunks of a response that are not compressed yet.
struct Gzip {
    encoder: GzEncoder<Vec<u8>>,
    /// Chunks before `rest`. They were read to determine whether the response is longer than
    /// [`THRESHOLD_BYTES`].
    held: std::vec::IntoIter<Bytes>,
    rest: Body,
}

/// Returns whether `Accept-Encoding` contains the token `gzip`, in lower case and without a weight.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let value = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let mut tokens = value.unwrap_or_default().split(',');
    tokens.any(|token| token.trim() == "gzip")
}

/// Compresses a response that is longer than [`THRESHOLD_BYTES`].
///
/// # Cancel safety
///
/// Dropping the future drops the response.
pub(crate) async fn compress(response: Response<Body>) -> Response<Body> {
    let (mut parts, mut body) = response.into_parts();
    let threshold = THRESHOLD_BYTES as u64;
    if body
        .size_hint()
        .upper()
        .is_some_and(|most| most <= threshold)
    {
        return Response::from_parts(parts, body);
    }
    let mut held = Vec::new();
    let mut bytes = 0;
    while bytes <= THRESHOLD_BYTES {
        match next(&mut body).await {
            Some(Ok(chunk)) => {
                bytes += chunk.len();
                held.push(Ok(chunk));
            }
            Some(Err(error)) => {
                held.push(Err(error));
                return Response::from_parts(parts, Body::stream(stream::iter(held)));
            }
            None => return Response::from_parts(parts, Body::stream(stream::iter(held))),
        }
    }
    let held: Vec<Bytes> = held.into_iter().flatten().collect();
    let gzip = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, gzip);
    let vary = HeaderValue::from_static("Accept-Encoding");
    parts.headers.append(header::VARY, vary);
    Response::from_parts(parts, Body::stream(chunks(held, body)))
}

fn chunks(held: Vec<Bytes>, rest: Body) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let gzip = Gzip {
        encoder: GzEncoder::new(Vec::new(), Compression::new(LEVEL)),
        held: held.into_iter(),
        rest,
    };
    stream::unfold(Some(gzip), async |gzip| gzip?.advance().await)
}

impl Gzip {
    /// Returns the next compressed chunk or an error, and the encoder unless this was the last result.
    async fn advance(mut self) -> Option<(Result<Bytes, BoxError>, Option<Gzip>)> {
        loop {
            let chunk = match self.held.next() {
                Some(chunk) => Some(Ok(chunk)),
                None => next(&mut self.rest).await,
            };
            let written = match chunk {
                Some(Ok(chunk)) => self.encoder.write_all(&chunk),
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let end = self.encoder.finish();
                    return Some((end.map(Bytes::from).map_err(Into::into), None));
                }
            };
            if let Err(error) = written {
                return Some((Err(error.into()), None));
            }
            // The compression of a long list takes about a second, and no other await in the loop yields.
            tokio::task::yield_now().await;
            let compressed = std::mem::take(self.encoder.get_mut());
            if !compressed.is_empty() {
                return Some((Ok(compressed.into()), Some(self)));
            }
        }
    }
}

/// Returns the next chunk of `body`, or `None` at the end of the body.
async fn next(body: &mut Body) -> Option<Result<Bytes, BoxError>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use flate2::read::GzDecoder;

    use super::*;

    const CHUNK_BYTES: usize = 64 * 1024;

    /// Returns a response with `chunks` chunks, and a counter of the chunks that have been read.
    fn chunked(chunks: usize) -> (Response<Body>, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        let chunks = (0..chunks).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from(vec![b'x'; CHUNK_BYTES]))
        });
        (Response::new(Body::stream(stream::iter(chunks))), taken)
    }

    #[tokio::test]
    async fn a_body_is_read_no_further_than_the_client_reads() {
        let (response, taken) = chunked(100);
        let mut body = compress(response).await.into_body();
        assert_eq!(
            taken.load(Ordering::Relaxed),
            3,
            "one chunk over the threshold"
        );
        assert!(next(&mut body).await.is_some_and(|chunk| chunk.is_ok()));
        assert!(taken.load(Ordering::Relaxed) < 10);
    }

    #[tokio::test]
    async fn every_chunk_is_restored() {
        let (response, _) = chunked(20);
        let response = compress(response).await;
        assert_eq!(response.headers()["vary"], "Accept-Encoding");
        let gzip = response.into_body().collect().await.unwrap().to_bytes();
        let mut plain = Vec::new();
        GzDecoder::new(&gzip[..]).read_to_end(&mut plain).unwrap();
        assert!(plain == vec![b'x'; 20 * CHUNK_BYTES]);
    }

    #[tokio::test]
    async fn a_short_stream_is_not_compressed() {
        let (response, _) = chunked(2);
        let response = compress(response).await;
        assert!(response.headers().is_empty());
        let plain = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(plain.len(), THRESHOLD_BYTES);
    }

    #[tokio::test]
    async fn an_error_ends_the_response_before_and_after_the_threshold() {
        for chunks in [1, 5] {
            let good = (0..chunks).map(|_| Ok(Bytes::from(vec![b'x'; CHUNK_BYTES])));
            let broken = good.chain([Err("torn".into())]);
            let response = Response::new(Body::stream(stream::iter(broken)));
            let body = compress(response).await.into_body();
            let error = body
                .collect()
                .await
                .expect_err("the body ends with an error");
            assert_eq!(error.to_string(), "torn", "after {chunks}");
        }
    }

    #[test]
    fn only_the_bare_token_accepts() {
        for (value, accepted) in [
            ("gzip", true),
            ("deflate, gzip, br", true),
            ("gzip;q=1", false),
            ("GZIP", false),
            ("*", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(is_accepted(&headers), accepted, "{value:?}");
        }
    }
}
