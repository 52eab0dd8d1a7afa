//! Wraps an informer's [`ListerWatcher`], and adds a planted bug to its requests or responses.
//!
//! A planted bug is a deliberate bug that the simulation must detect.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};
use futures_util::StreamExt as _;
use kube_informer::transport::{ByteStream, Class, Error, ListOptions, ListerWatcher, Response};
use memchr::memmem;
use tokio::{task::JoinSet, time::sleep};

use super::Bug;
use crate::wire::is_old_object;

/// Interval, in lines of a watch, at which [`Bug::EventLost`] drops an event.
const LOST: usize = 7;

/// Maximum number of retries without a pause that [`Bug::RetriedAtOnce`] sends for one rejected watch.
const TRIES: usize = 100;

/// A list and watch source that contains the planted bug `bug`, if any.
pub(crate) struct Spoilt<S> {
    source: S,
    bug: Option<Bug>,
}

impl<S: ListerWatcher> Spoilt<S> {
    pub(crate) fn new(source: S, bug: Option<Bug>) -> Self {
        Self { source, bug }
    }

    async fn spoilt_watch(&self, mut options: ListOptions) -> Result<Response, Error> {
        let streams = options.send_initial_events.is_some();
        if self.bug == Some(Bug::WatchFromNow) && !streams {
            options.resource_version = "".into();
        }
        let mut opened = self.source.watch(&options).await;
        let mut tries = 0;
        while self.bug == Some(Bug::RetriedAtOnce) && opened.is_err() && tries < TRIES {
            tries += 1;
            opened = self.source.watch(&options).await;
        }
        if self.bug == Some(Bug::RetryAfterIgnored) {
            opened = opened.map_err(|error| error.with_retry_after(None));
        }
        if self.bug == Some(Bug::ListedAfterOutage) && !streams {
            opened = opened.map_err(|error| match error.class() {
                Class::Unavailable => Error::new(Class::Server, error.to_string()),
                _ => error,
            });
        }
        let response = match (self.bug, opened) {
            (Some(Bug::Panics), Err(_)) => panic!("planted: a rejected watch"),
            (Some(Bug::GoneIgnored), Err(error)) if error.class() == Class::Expired => {
                let nothing: ByteStream = Box::pin(futures_util::stream::empty());
                return Ok(nothing.into());
            }
            (_, opened) => opened?,
        };
        Ok(response.map_body(|body| self.spoilt_events(body, streams)))
    }

    fn spoilt_events(&self, body: ByteStream, streams: bool) -> ByteStream {
        match self.bug {
            Some(Bug::EventLost) if !streams => lines(body, |number, line| {
                let lost = number.is_multiple_of(LOST) && !has(line, b"BOOKMARK");
                (!lost).then(|| line.clone())
            }),
            Some(Bug::GoneIgnored) => lines(body, |_, line| {
                (!has(line, b"\"code\":410")).then(|| line.clone())
            }),
            Some(Bug::BookmarkTooEarly) if streams => lines(body, |_, line| {
                has(line, b"initial-events-end").then(|| line.clone())
            }),
            Some(Bug::OldEventListed) => Box::pin(body.map(|chunk| {
                match chunk {
                    Ok(chunk)
                        if chunk
                            .split_inclusive(|byte| *byte == b'\n')
                            .any(is_old_object) =>
                    {
                        Err(Error::new(Class::WentBack, "an old object"))
                    }
                    chunk => chunk,
                }
            })),
            Some(Bug::BodyLeaked) => leak(body),
            Some(Bug::TaskLeaked) => {
                let mut tasks = JoinSet::new();
                tasks.spawn(sleep(Duration::from_secs(1_000_000)));
                tasks.detach_all();
                body
            }
            _ => body,
        }
    }

    async fn spoilt_list(&self, options: ListOptions) -> Result<Response, Error> {
        let response = self.source.list(&options).await?;
        if self.bug != Some(Bug::FirstPageOnly) {
            return Ok(response);
        }
        let without_token = |_, line: &Bytes| {
            let text = String::from_utf8_lossy(line);
            let Some((before, behind)) = text.split_once("\"continue\":\"") else {
                return Some(line.clone());
            };
            let (_, behind) = behind.split_once('"')?;
            Some(format!("{before}\"continue\":\"\"{behind}").into())
        };
        Ok(response.map_body(|body| lines(body, without_token)))
    }
}

impl<S: ListerWatcher> ListerWatcher for Spoilt<S> {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(self.spoilt_list(options.clone()))
    }

    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.source.list_metadata(options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(self.spoilt_watch(options.clone()))
    }

    fn streams_lists(&self) -> bool {
        self.source.streams_lists()
    }

    fn collection(&self) -> Option<String> {
        self.source.collection()
    }

    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        self.source.server()
    }

    fn description(&self) -> String {
        self.source.description()
    }
}

fn has(line: &Bytes, word: &[u8]) -> bool {
    memmem::find(line, word).is_some()
}

/// Returns a stream of the body's chunks that never drops the body.
fn leak(body: ByteStream) -> ByteStream {
    let body = Box::leak(Box::new(body));
    Box::pin(futures_util::stream::poll_fn(move |context| {
        body.as_mut().poll_next(context)
    }))
}

/// Replaces each line of `body` by the result of `change`, or drops the line if the result is `None`.
///
/// The arguments of `change` are the line's number, counted from 1, and its text. The text after the last
/// line end counts as a line.
fn lines(
    body: ByteStream,
    change: impl Fn(usize, &Bytes) -> Option<Bytes> + Send + 'static,
) -> ByteStream {
    let mut number = 0;
    let mut waiting = Vec::new();
    let chunks = body
        .map(Some)
        .chain(futures_util::stream::once(async { None }));
    let chunks = chunks.map(move |chunk| {
        let mut out = Vec::new();
        match chunk {
            Some(Err(error)) => return Err(error),
            Some(Ok(chunk)) => waiting.extend_from_slice(&chunk),
            None => return Ok(change_last(&mut waiting, &mut number, &change)),
        }
        while let Some(end) = memchr::memchr(b'\n', &waiting) {
            number += 1;
            let line: Bytes = waiting.drain(..=end).collect();
            out.extend(change(number, &line).unwrap_or_default());
        }
        Ok(out.into())
    });
    let some = |chunk: &Result<Bytes, Error>| {
        std::future::ready(!matches!(chunk, Ok(chunk) if chunk.is_empty()))
    };
    let chunks: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(chunks.filter(some));
    chunks
}

/// Replaces the text after the last line end by the result of `change`.
///
/// In a list response, which contains no line end, this is the whole body.
fn change_last(
    waiting: &mut Vec<u8>,
    number: &mut usize,
    change: &impl Fn(usize, &Bytes) -> Option<Bytes>,
) -> Bytes {
    *number += 1;
    let rest: Bytes = std::mem::take(waiting).into();
    change(*number, &rest).unwrap_or_default()
}
