//! Handles GET on `pods/log`: the log of a container, from the server's [`PodLogs`](crate::PodLogs).
//!
//! Guarantees: the options, their checks and the errors about pod and container are those of
//! `pkg/registry/core/pod/rest/log.go` in Kubernetes. The options select lines as a kubelet does.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::StatusCode;
use jiff::Timestamp;

use super::Call;
use crate::body::{Body, BoxError};
use crate::go_time::{GoTime, Layout};
use crate::object::Object;
use crate::pod_log::{LogLine, LogOf, PodLog};
use crate::reply::Reply;
use crate::route::{Query, Target};
use crate::status::{ApiError, FieldError};

/// The options of a request for a log (`PodLogOptions`).
struct Options {
    container: String,
    previous: bool,
    follow: bool,
    selection: Selection,
    tail: Option<usize>,
}

/// Which parts of lines are sent.
#[derive(Clone, Copy)]
struct Selection {
    timestamps: bool,
    since: Option<Timestamp>,
    /// The number of bytes that may still be sent.
    left: Option<usize>,
}

impl Call {
    pub(super) fn read_log(&self, target: &Target) -> Result<Reply, ApiError> {
        let subject = Self::subject(target)?;
        let now = self.shared.settings.clock.now();
        let options = Options::parse(&self.query, subject.name, now)?;
        let pod = subject.read(&self.shared)?.1;
        let container = container_of(&pod, subject.name, &options.container)?;
        if !has_node(&pod) {
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        let Some(source) = &self.shared.settings.pod_logs.0 else {
            let message =
                "this server has no logs of pods; see Builder::pod_logs and `serve --controllers`";
            return Err(ApiError::new(501, "NotImplemented", message));
        };
        let of = LogOf {
            namespace: subject.namespace.unwrap_or_default().to_owned(),
            pod: subject.name.to_owned(),
            uid: pod.text("uid").to_owned(),
            container,
            previous: options.previous,
        };
        let log = source.open(&of).map_err(ApiError::bad_request)?;
        Ok(Reply {
            content_type: "text/plain",
            ..Reply::new(StatusCode::OK, options.body(log), None)
        })
    }
}

fn has_node(pod: &Object) -> bool {
    let node = pod.get("spec").and_then(|spec| spec["nodeName"].as_str());
    node.is_some_and(|node| !node.is_empty())
}

/// Returns the name of the container whose log is read: the asked one, or the only one.
fn container_of(pod: &Object, name: &str, asked: &str) -> Result<String, ApiError> {
    let names = |field: &str| -> Vec<String> {
        let containers = pod.get("spec").and_then(|spec| spec[field].as_array());
        let containers = containers.into_iter().flatten();
        containers
            .filter_map(|it| it["name"].as_str())
            .map(str::to_owned)
            .collect()
    };
    let containers = names("containers");
    let all = [
        names("initContainers"),
        containers.clone(),
        names("ephemeralContainers"),
    ]
    .concat();
    if !asked.is_empty() {
        return if all.iter().any(|known| known == asked) {
            Ok(asked.to_owned())
        } else {
            let message = format!("container {asked} is not valid for pod {name}");
            Err(ApiError::bad_request(message))
        };
    }
    let must = format!("a container name must be specified for pod {name}");
    match &containers[..] {
        [only] => Ok(only.clone()),
        [] => Err(ApiError::bad_request(must)),
        _ => Err(ApiError::bad_request(format!(
            "{must}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

// === impl Options ===

impl Options {
    fn parse(query: &Query, pod: &str, now: Timestamp) -> Result<Options, ApiError> {
        let seconds = query.number("sinceSeconds")?;
        let time = query.text("sinceTime").filter(|text| !text.is_empty());
        let time = time.map(parse_time).transpose()?;
        let limit = query.number("limitBytes")?;
        let tail = query.number("tailLines")?;
        let mut errors = Vec::new();
        let mut check = |name: &'static str, value: Option<i64>, least: i64| {
            if let Some(value) = value.filter(|value| *value < least) {
                let bound = if least == 0 {
                    "greater than or equal to 0"
                } else {
                    "greater than 0"
                };
                errors.push(FieldError::invalid(
                    name,
                    value,
                    &format!("must be {bound}"),
                ));
            }
        };
        check("tailLines", tail, 0);
        check("limitBytes", limit, 1);
        if time.is_none() {
            check("sinceSeconds", seconds, 1);
        } else if seconds.is_some() {
            let text = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("", text));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid_kind("", "PodLogOptions", pod, &errors));
        }
        let ago = seconds.and_then(|seconds| {
            now.checked_sub(jiff::SignedDuration::from_secs(seconds))
                .ok()
        });
        Ok(Options {
            container: query.text("container").unwrap_or_default().to_owned(),
            previous: query.flag("previous").unwrap_or_default(),
            follow: query.flag("follow").unwrap_or_default(),
            selection: Selection {
                timestamps: query.flag("timestamps").unwrap_or_default(),
                since: time.or(ago),
                left: limit.and_then(|limit| usize::try_from(limit).ok()),
            },
            tail: tail.and_then(|lines| usize::try_from(lines).ok()),
        })
    }

    fn body(self, log: PodLog) -> Body {
        let mut selection = self.selection;
        let skipped = self
            .tail
            .map_or(0, |tail| log.lines.len().saturating_sub(tail));
        let mut text = Vec::new();
        for line in &log.lines[skipped..] {
            text.extend(selection.shown(line));
        }
        match log.more.filter(|_| self.follow) {
            Some(more) => Body::stream(Following {
                first: Some(text.into()),
                more,
                selection,
            }),
            None => Body::full(text),
        }
    }
}

fn parse_time(text: &str) -> Result<Timestamp, ApiError> {
    let time = GoTime::parse(Layout::Rfc3339, text).map_err(ApiError::bad_request)?;
    Timestamp::new(time.seconds, time.nanoseconds.cast_signed())
        .map_err(|_| ApiError::bad_request(format!("the time {text:?} is out of range")))
}

impl Selection {
    /// Returns the bytes of a line that are sent.
    fn shown(&mut self, line: &LogLine) -> Vec<u8> {
        let time = Timestamp::try_from(line.time).unwrap_or_default();
        if self.since.is_some_and(|since| time < since) {
            return Vec::new();
        }
        let mut text = format!("{}\n", line.text).into_bytes();
        if self.timestamps {
            text.splice(0..0, format!("{time:.9} ").into_bytes());
        }
        if let Some(left) = &mut self.left {
            text.truncate(*left);
            *left -= text.len();
        }
        text
    }

    fn is_over(&self) -> bool {
        self.left == Some(0)
    }
}

/// The body of a log that is followed until the container ends.
struct Following {
    first: Option<Bytes>,
    more: Pin<Box<dyn Stream<Item = LogLine> + Send>>,
    selection: Selection,
}

impl Stream for Following {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(first)));
        }
        while !this.selection.is_over() {
            let Some(line) = ready!(this.more.as_mut().poll_next(cx)) else {
                break;
            };
            let shown = this.selection.shown(&line);
            if !shown.is_empty() {
                return Poll::Ready(Some(Ok(shown.into())));
            }
        }
        Poll::Ready(None)
    }
}
