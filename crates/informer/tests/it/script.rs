//! A `ListerWatcher` that answers requests from a script. Tests use it for responses that the embedded server
//! cannot send.

use std::{collections::VecDeque, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use kube_informer::transport::{ByteStream, Class, Error, ListOptions, ListerWatcher, Response};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::setting::Trace;

/// The scripted response to one list or watch request.
pub(crate) enum Answer {
    Refuse(Class),
    /// The request fails with this HTTP status code and this `Status` object.
    RefuseWith(u16, &'static str),
    /// The request never completes.
    Never,
    /// The request receives the contained answer after this delay.
    After(Duration, Box<Answer>),
    /// A body with this text as its first chunk; `Then` describes the rest.
    Body(String, Then),
    /// A body that begins with these chunks; `Then` describes the rest.
    ///
    /// Each chunk becomes ready only after the client has read the previous chunk.
    Chunks(Vec<String>, Then),
    /// The response is a body that repeats this text without end and without delay.
    Flood(&'static str),
    /// The response is the contained answer with this content type instead of `application/json`.
    Labelled(&'static str, Box<Answer>),
}

/// The part of a response body that follows the scripted text.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Ends,
    EndsAfter(Duration),
    Breaks(Class),
    Hangs,
    /// The body continues with an infinite sequence of chunks, and pauses for this duration before each.
    ///
    /// The function returns the text of a chunk. Its argument is 1 for the first chunk after the scripted
    /// text, and increases by 1 per chunk.
    Goes(Duration, fn(u64) -> String),
}

/// A source that gives scripted answers to list and watch requests, in order.
///
/// Requests after the last answer never complete.
#[derive(Clone)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// The received requests, one per line: verb, resource version and continue token.
    pub(crate) requests: Trace,
    /// The received requests, one per line: time in seconds since `begun`, then verb and query parameters.
    pub(crate) log: Trace,
    begun: Instant,
    streams: bool,
    /// Counts pending requests, undropped response bodies and clones of the script, as `Arc` references.
    under_way: Arc<()>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            requests: Trace::default(),
            log: Trace::default(),
            begun: Instant::now(),
            streams: false,
            under_way: Arc::default(),
        }
    }

    /// Creates a source that gives these answers and supports streaming lists.
    pub(crate) fn streaming(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            streams: true,
            ..Self::new(answers)
        }
    }

    /// Returns the number of answers that no request has received yet.
    pub(crate) fn unasked(&self) -> usize {
        self.answers.lock().len()
    }

    /// Returns the total number of pending requests, undropped response bodies, and other clones of `self`.
    pub(crate) fn under_way(&self) -> usize {
        Arc::strong_count(&self.under_way) - 1
    }

    fn answer(&self, verb: &str, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let page = options.continue_token.as_deref().unwrap_or_default();
        self.requests
            .note(format!("{verb} {} {page}", options.resource_version).trim_end());
        self.log.note(self.line(verb, options));
        let mut answer = self.answers.lock().pop_front().unwrap_or(Answer::Never);
        let held = Arc::clone(&self.under_way);
        Box::pin(async move {
            while let Answer::After(pause, late) = answer {
                sleep(pause).await;
                answer = *late;
            }
            let mut label = None;
            if let Answer::Labelled(content_type, labelled) = answer {
                (label, answer) = (Some(content_type), *labelled);
            }
            if let Answer::Body(text, then) = answer {
                answer = Answer::Chunks(vec![text], then);
            }
            let body: ByteStream = match answer {
                Answer::After(..) | Answer::Body(..) | Answer::Labelled(..) => {
                    unreachable!("replaced above")
                }
                Answer::Refuse(class) => return Err(Error::new(class, "planted")),
                Answer::RefuseWith(code, status) => {
                    return Err(Error::from_status_body(code, status.as_bytes()));
                }
                Answer::Never => std::future::pending().await,
                Answer::Flood(text) => {
                    stream::repeat_with(move || Ok(Bytes::from_static(text.as_bytes()))).boxed()
                }
                Answer::Chunks(chunks, then) => {
                    let body = stream::iter(chunks.into_iter().enumerate());
                    let body = body.then(async |(number, text)| {
                        if number > 0 {
                            woken_at_once().await;
                        }
                        Ok(Bytes::from(text))
                    });
                    match then {
                        Then::Ends => body.boxed(),
                        Then::EndsAfter(after) => {
                            let end = sleep(after).map(|()| Ok(Bytes::new())).into_stream();
                            body.chain(end).boxed()
                        }
                        Then::Breaks(class) => {
                            let broken = Err(Error::new(class, "planted"));
                            body.chain(stream::iter([broken])).boxed()
                        }
                        Then::Hangs => body.chain(stream::pending()).boxed(),
                        Then::Goes(pause, nth) => {
                            let more = stream::iter(1..)
                                .then(move |n| sleep(pause).map(move |()| Ok(Bytes::from(nth(n)))));
                            body.chain(more).boxed()
                        }
                    }
                }
            };
            let held = body.inspect(move |_| {
                // Kept only to be dropped with the body.
                let _ = &held;
            });
            Ok(match label {
                Some(content_type) => Response::new(content_type, held.boxed()),
                None => held.boxed().into(),
            })
        })
    }

    /// Returns the log's line for a request.
    ///
    /// For a watch, the line omits `timeoutSeconds`, `allowWatchBookmarks`, `sendInitialEvents` and
    /// `resourceVersionMatch`. Instead, the function asserts the values of these parameters.
    fn line(&self, verb: &str, options: &ListOptions) -> String {
        let at = self.begun.elapsed().as_secs_f64();
        let shown = match options.send_initial_events {
            Some(true) => "stream",
            _ => verb,
        };
        let mut words = vec![format!("{at:.1} s: {shown}")];
        for (name, value) in options.query() {
            match name {
                "resourceVersionMatch" if verb == "watch" => assert_eq!(value, "NotOlderThan"),
                "timeoutSeconds" => {
                    let seconds: u32 = value.parse().unwrap();
                    assert!((300..=600).contains(&seconds), "{seconds} s");
                }
                "sendInitialEvents" | "allowWatchBookmarks" => {
                    assert_eq!((verb, &*value), ("watch", "true"));
                }
                _ => words.push(format!("{name}={value}")),
            }
        }
        assert_eq!(options.allow_watch_bookmarks, verb == "watch");
        assert_eq!(options.timeout_seconds.is_some(), verb == "watch");
        if verb == "watch" {
            let matched = options.resource_version_match.is_some();
            assert_eq!(options.send_initial_events.is_some(), matched);
        }
        words.join(" ")
    }
}

impl ListerWatcher for Script {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.answer("list", options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.answer("watch", options)
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

pub(crate) fn pod(name: &str, revision: u64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","resourceVersion":"{revision}"}}}}"#
    )
}

pub(crate) fn list(revision: u64, token: &str, pods: &[String]) -> String {
    let meta = format!(r#"{{"resourceVersion":"{revision}","continue":"{token}"}}"#);
    format!(
        r#"{{"kind":"PodList","metadata":{meta},"items":[{}]}}"#,
        pods.join(",")
    )
}

pub(crate) fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub(crate) fn body(text: String) -> Answer {
    Answer::Body(text, Then::Ends)
}

pub(crate) fn hangs(text: String) -> Answer {
    Answer::Body(text, Then::Hangs)
}

/// Returns a watch event of type `ERROR` with this `Status` object.
pub(crate) fn error_event(status: &str) -> String {
    event("ERROR", status)
}

/// Wakes the current task and yields once.
///
/// Tokio then polls the task again before it handles timers and I/O. After `yield_now`, Tokio handles them
/// first.
async fn woken_at_once() {
    let mut is_woken = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut is_woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
