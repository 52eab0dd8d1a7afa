//! Runs the commands of a case on a server, and returns the answers.
//!
//! Each case runs in a new namespace, whose name is the value of the variable `$ns`. The value of the
//! variable `$guest` is the token of a user without permissions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use http::{HeaderMap, HeaderValue, Request as HttpRequest, header};
use http_body_util::{BodyExt as _, BodyStream};
use kube_client::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    answer::{Answer, Content, End, Response},
    case::Case,
    command::{Command, Request, Wanted},
    informer::Informer,
    informer_command::{Action, InformerCommand, Options},
    json::Json,
    manifest::{Encoding, Exchange, Manifest},
    target::Connection,
};

/// Time limit of a response. A busy kube-apiserver responds within 5 s.
const RESPONSE_MAX: Duration = Duration::from_secs(30);

/// Maximum wait for the next event of a watch, or for the expected status of a repeated request.
const EVENT_MAX: Duration = Duration::from_secs(6);

/// Pause between two repetitions of a request.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum time to wait for each further event of a watch at the end of a case.
///
/// A case must read all events except bookmarks, so a further event is a mistake in the case. Servers send
/// the events of a write immediately, so a further event arrives within this time.
const MORE: Duration = Duration::from_millis(50);

/// Parameter of a watch that allows bookmarks.
const BOOKMARKS: &str = "allowWatchBookmarks=true";

/// Maximum length of a namespace, in characters.
const NAMESPACE_MAX: usize = 63;

/// Value of the header `Authorization` in a case. A request with this value is sent without the header.
const NO_AUTHORIZATION: &str = "none";

struct Run<'a> {
    connection: &'a Connection,
    variables: BTreeMap<String, String>,
    watches: BTreeMap<String, Watch>,
    informers: BTreeMap<String, Informer>,
    /// Further namespaces, which exist.
    namespaces: BTreeSet<String>,
    /// Whether a wait for a status or for an informer has failed. Later waits are then skipped.
    is_late: bool,
    /// The last response body, or the object of the last event. Null if the body was not JSON.
    last: Value,
}

struct Watch {
    body: BodyStream<Body>,
    buffer: BytesMut,
    allows_bookmarks: bool,
}

/// Runs `case`, and returns one answer for each command.
///
/// # Errors
/// Returns an error if the namespace can't be created, if a command can't be sent, or if a response breaks
/// off. An error response of the server is an answer.
pub(crate) async fn run(case: &Case, connection: &Connection) -> Result<Vec<Answer>> {
    let answers = answers(case, connection).await;
    if case.has_controllers() {
        connection.stop_controllers().await;
    }
    answers
}

async fn answers(case: &Case, connection: &Connection) -> Result<Vec<Answer>> {
    let namespace = namespace(&case.name);
    let mut run = Run {
        connection,
        variables: BTreeMap::from([
            ("ns".to_owned(), namespace.clone()),
            ("guest".to_owned(), connection.token("guest")?.to_owned()),
        ]),
        watches: BTreeMap::new(),
        informers: BTreeMap::new(),
        namespaces: BTreeSet::new(),
        is_late: false,
        last: Value::Null,
    };
    run.create(&namespace).await?;
    let mut answers = Vec::with_capacity(case.steps.len());
    for step in &case.steps {
        let answer = run.answer(&step.command).await;
        answers.push(answer.with_context(|| format!("at {:?}", step.command))?);
    }
    run.no_more_events().await?;
    for (name, informer) in &mut run.informers {
        let was_late = run.is_late;
        let ended = async {
            if !was_late {
                informer.no_more_events().await?;
            }
            informer.end().await
        };
        let ended = ended.await;
        ended.with_context(|| format!("at the end of the informer {name}"))?;
    }
    Ok(answers)
}

/// Returns the name of the namespace of the case `name`.
fn namespace(name: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | '0'..='9' => letter,
        _ => '-',
    };
    let name: String = name.chars().map(letter).take(NAMESPACE_MAX).collect();
    name.trim_matches('-').to_owned()
}

impl Run<'_> {
    async fn create(&mut self, namespace: &str) -> Result<()> {
        let object = json!({"metadata": {"name": namespace}});
        let request = Request {
            method: "POST".to_owned(),
            target: "/api/v1/namespaces".to_owned(),
            headers: Vec::new(),
            body: object.to_string().into_bytes(),
        };
        let response = self.response(&request).await?;
        ensure!(response.status == 201, "no namespace: {response:?}");
        Ok(())
    }

    async fn answer(&mut self, command: &Command) -> Result<Answer> {
        match command {
            Command::Request(request) => Ok(Answer::Response(self.response(request).await?)),
            Command::Do(request) => {
                let response = self.response(request).await?;
                Ok(Answer::Prepared(response))
            }
            Command::Manifest(request) => self.exchange(request).await,
            Command::Await { status, request } => self.repeat(*status, request).await,
            Command::Watch { stream, request } => {
                let response = self.send(request).await?;
                let (parts, body) = response.into_parts();
                let mut answer = Response {
                    status: parts.status.as_u16(),
                    headers: headers(&parts.headers),
                    body: Content::Stream,
                };
                if parts.status.is_success() {
                    let watch = Watch {
                        body: BodyStream::new(body),
                        buffer: BytesMut::new(),
                        allows_bookmarks: request.target.contains(BOOKMARKS),
                    };
                    self.watches.insert(stream.clone(), watch);
                } else {
                    answer.body = content(whole(body).await?);
                }
                Ok(Answer::Response(answer))
            }
            Command::Events { stream, wanted } => {
                let Some(watch) = self.watches.get_mut(stream) else {
                    return Ok(Answer::Impossible(format!("there is no watch {stream}")));
                };
                let answer = watch.events(stream, *wanted).await?;
                if *wanted == Wanted::UntilMarked {
                    self.watches.remove(stream);
                }
                if let Answer::Events { events, .. } = &answer
                    && let Some(event) = events.last()
                {
                    self.last = event["object"].clone();
                }
                Ok(answer)
            }
            Command::Set { variable, pointer } => {
                let Some(found) = self.last.pointer(pointer) else {
                    let reason = format!("the last response has no {pointer}");
                    return Ok(Answer::Impossible(reason));
                };
                let text = found.as_str().map_or(found.to_string(), str::to_owned);
                self.variables.insert(variable.clone(), text);
                Ok(Answer::Nothing)
            }
            Command::Informer(command) => self.inform(command).await,
            Command::Compact => {
                self.connection.compact().await?;
                Ok(Answer::Nothing)
            }
            Command::Allow { user, resource } => {
                let namespace = &self.variables["ns"];
                self.connection.allow(user, resource, namespace).await?;
                Ok(Answer::Nothing)
            }
            Command::Controllers => {
                self.connection.start_controllers().await?;
                Ok(Answer::Nothing)
            }
        }
    }

    async fn inform(&mut self, command: &InformerCommand) -> Result<Answer> {
        let InformerCommand { informer, action } = command;
        if let Action::Start(options) = action {
            let options = Options {
                path: self.replaced(&options.path),
                fields: options
                    .fields
                    .as_deref()
                    .map(|fields| self.replaced(fields)),
                ..options.clone()
            };
            let started = Informer::start(&options, self.connection).await?;
            let earlier = self.informers.insert(informer.clone(), started);
            ensure!(earlier.is_none(), "there are two informers {informer}");
            return Ok(Answer::Nothing);
        }
        let found = self.informers.get_mut(informer);
        let found = found.with_context(|| format!("there is no informer {informer}"))?;
        if self.is_late && action.waits() {
            return Ok(not_tried());
        }
        let answer = found.act(action, self.connection, &self.last).await?;
        self.is_late |= matches!(
            answer,
            Answer::Impossible(_) | Answer::Lines { end: End::Late, .. }
        );
        Ok(answer)
    }

    /// Creates the object of a manifest in each encoding, each in another namespace, and reads it in each encoding.
    async fn exchange(&mut self, request: &Request) -> Result<Answer> {
        let (namespace, target) = (self.variables["ns"].clone(), request.target.clone());
        let manifest = String::from_utf8(request.body.clone())?;
        let mut texts: Vec<String> = Vec::new();
        for encoding in Encoding::ALL {
            let own = format!("{namespace}-{}", encoding.name());
            if self.namespaces.insert(own.clone()) {
                self.create(&own).await?;
            }
            let manifest = Manifest::parse(manifest.replace("$ns", &own))?;
            if !manifest.has(encoding) {
                continue;
            }
            let target = target.replace("$ns", &own);
            let object = format!("{target}/{}", manifest.name()?);
            let created = self.response(&manifest.request(&target, encoding)?).await?;
            if created.status != 201 {
                return Ok(Answer::Response(created));
            }
            let as_yaml = self.send(&Manifest::read(&object, Encoding::Yaml)).await?;
            let as_yaml = whole(as_yaml.into_body()).await?;
            let mut as_protobuf = None;
            if manifest.has(Encoding::Protobuf) {
                let read = self
                    .send(&Manifest::read(&object, Encoding::Protobuf))
                    .await?;
                as_protobuf = Some(whole(read.into_body()).await?);
            }
            let as_json = self
                .response(&Manifest::read(&object, Encoding::Json))
                .await?;
            let exchange = Exchange {
                created,
                as_json,
                as_yaml,
                as_protobuf,
            };
            let text = exchange.text(&manifest, &own, &namespace)?;
            match texts.first() {
                Some(first) if *first == text => {}
                Some(_) => texts.push(format!("sent as {}: {text}", encoding.name())),
                None => texts.push(text),
            }
        }
        Ok(Answer::Exchanges(texts.concat()))
    }

    /// Repeats a request until its response has the status `wanted`.
    async fn repeat(&mut self, wanted: u16, request: &Request) -> Result<Answer> {
        if self.is_late {
            return Ok(not_tried());
        }
        let until = Instant::now() + EVENT_MAX;
        loop {
            let status = self.response(request).await?.status;
            if status == wanted {
                return Ok(Answer::Nothing);
            }
            if Instant::now() > until {
                self.is_late = true;
                return Ok(Answer::Impossible(format!("the status is still {status}")));
            }
            sleep(PAUSE).await;
        }
    }

    /// Checks that no watch has an event that the case has not read.
    async fn no_more_events(&mut self) -> Result<()> {
        for (stream, watch) in &mut self.watches {
            while let Ok(Ok(Some(event))) = timeout(MORE, watch.next()).await {
                // A server sends bookmarks at times of its own.
                ensure!(
                    watch.allows_bookmarks && event["type"] == "BOOKMARK",
                    "the case does not read this event of the watch {stream}: {}",
                    event.value
                );
            }
        }
        Ok(())
    }

    /// Sends a request, and returns the whole response.
    async fn response(&mut self, request: &Request) -> Result<Response> {
        let (parts, body) = self.send(request).await?.into_parts();
        let body = content(whole(body).await?);
        self.last = match &body {
            Content::Json(json) => json.value.clone(),
            Content::Other(_) | Content::Stream => Value::Null,
        };
        Ok(Response {
            status: parts.status.as_u16(),
            headers: headers(&parts.headers),
            body,
        })
    }

    async fn send(&self, request: &Request) -> Result<http::Response<Body>> {
        let target = self.replaced(&request.target);
        let mut sent = HttpRequest::builder().method(&*request.method).uri(target);
        let (mut has_type, mut has_access) = (request.body.is_empty(), false);
        for (name, value) in &request.headers {
            has_type |= name.eq_ignore_ascii_case("content-type");
            if name.eq_ignore_ascii_case("authorization") {
                has_access = true;
                if value == NO_AUTHORIZATION {
                    continue;
                }
            }
            sent = sent.header(name, self.replaced(value));
        }
        if !has_type {
            sent = sent.header(header::CONTENT_TYPE, "application/json");
        }
        if !has_access {
            let value = format!("Bearer {}", self.connection.token);
            let mut value = HeaderValue::try_from(value)?;
            value.set_sensitive(true);
            sent = sent.header(header::AUTHORIZATION, value);
        }
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => self.replaced(text).into_bytes(),
            Err(_) => request.body.clone(),
        };
        let sent = sent.body(Body::from(body))?;
        let response = timeout(RESPONSE_MAX, self.connection.client.send(sent)).await;
        Ok(response.context("no response in time")??)
    }

    /// Replaces each `$name` by the value of the variable `name`.
    ///
    /// If several variable names match the text after a `$`, the longest name is used.
    fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut names: Vec<_> = self.variables.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, value) in names {
            text = text.replace(&format!("${name}"), value);
        }
        text
    }
}

impl Watch {
    async fn events(&mut self, stream: &str, wanted: Wanted) -> Result<Answer> {
        let mut events = Vec::new();
        let end = loop {
            if wanted == Wanted::Count(events.len()) {
                break End::Received;
            }
            match timeout(EVENT_MAX, self.next()).await {
                Err(_) => break End::Late,
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) => break End::Ended,
                Ok(Ok(Some(event))) => {
                    let metadata = &event["object"]["metadata"];
                    let is_marked = metadata["labels"]["marked"] == stream;
                    let is_timed = event["type"] == "BOOKMARK" && metadata["annotations"].is_null();
                    if is_timed && wanted == Wanted::UntilMarked {
                        continue;
                    }
                    events.push(event);
                    if is_marked && wanted == Wanted::UntilMarked {
                        break End::Received;
                    }
                }
            }
        };
        Ok(Answer::Events { events, end })
    }

    /// Returns the next event, or `None` if the server has ended the watch.
    async fn next(&mut self) -> Result<Option<Json>> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(at + 1);
                let event = Json::parse(&line);
                return event.map(Some).context("an event is not JSON");
            }
            let Some(frame) = self.body.try_next().await? else {
                ensure!(self.buffer.is_empty(), "the watch ended inside an event");
                return Ok(None);
            };
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

/// Returns the answer of a wait that is skipped because an earlier wait failed.
fn not_tried() -> Answer {
    Answer::Impossible("not tried, because an earlier wait was without success".to_owned())
}

async fn whole(body: Body) -> Result<Bytes> {
    let body = timeout(RESPONSE_MAX, body.collect()).await;
    Ok(body
        .context("the response did not end in time")??
        .to_bytes())
}

fn content(bytes: Bytes) -> Content {
    match Json::parse(&bytes) {
        Ok(json) => Content::Json(json),
        Err(_) => Content::Other(bytes),
    }
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let header = |(name, value): (&http::HeaderName, &HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    };
    headers.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_valid_name() {
        assert_eq!(namespace("list/pages_of_one"), "list-pages-of-one");
        assert_eq!(namespace(&"a/".repeat(80)).len(), 63);
    }
}
