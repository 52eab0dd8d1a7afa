//! Deliberate defects of the embedded server. The comparison of the embedded server with a real
//! kube-apiserver must find each of them.
//!
//! A defect changes the requests to the embedded server, or its responses.

use harness::bugs;
use serde_json::Value;

use crate::{
    answer::{Answer, Content},
    case::Case,
    command::{Command, Request},
};

bugs! {
    pub(super) enum Bug {
        Preconditions: "preconditions of a deletion are ignored",
        Revision: "an update does not check the revision",
        LabelSelector: "a label selector is ignored",
        DryRun: "a dry run is stored",
        Finalizers: "finalizers of a new object are dropped",
        Limit: "the limit of a list is ignored",
        Deleted: "a watch reports a deletion as a modification",
        Lost: "every tenth event of a watch is lost",
        Generation: "the generation of a replica set is always 1",
        Created: "a create responds with 200",
        Keys: "an invalid key of a ConfigMap is accepted",
    }
}

impl Bug {
    /// Changes the requests of `case`.
    pub(super) fn change(self, case: &mut Case) {
        for step in &mut case.steps {
            match &mut step.command {
                Command::Request(request)
                | Command::Do(request)
                | Command::Manifest(request)
                | Command::Await { request, .. }
                | Command::Watch { request, .. } => self.request(request),
                Command::Events { .. }
                | Command::Set { .. }
                | Command::Informer(_)
                | Command::Compact
                | Command::Allow { .. }
                | Command::Controllers => {}
            }
        }
    }

    fn request(self, request: &mut Request) {
        match self {
            Self::Preconditions if request.method == "DELETE" => {
                change(request, |body| drop(body.remove("preconditions")));
            }
            Self::Revision if request.method == "PUT" => {
                change(request, |body| {
                    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
                    metadata.map(|metadata| metadata.remove("resourceVersion"));
                });
            }
            Self::Finalizers if request.method == "POST" => {
                change(request, |body| {
                    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
                    metadata.map(|metadata| metadata.remove("finalizers"));
                });
            }
            Self::Keys if request.target.contains("/configmaps") => {
                change(request, |body| {
                    let data = body.get_mut("data").and_then(Value::as_object_mut);
                    data.map(|data| data.remove("not a key"));
                });
            }
            Self::LabelSelector => drop_parameter(request, "labelSelector="),
            Self::DryRun => drop_parameter(request, "dryRun="),
            Self::Limit => drop_parameter(request, "limit="),
            _ => {}
        }
    }

    pub(super) fn answer(self, answers: &mut [Answer]) {
        let mut number = 0;
        for answer in answers {
            match (self, answer) {
                (Self::Deleted, Answer::Events { events, .. }) => {
                    let deleted = events.iter_mut().filter(|event| event["type"] == "DELETED");
                    deleted.for_each(|event| event["type"] = "MODIFIED".into());
                }
                (Self::Lost, Answer::Events { events, .. }) => events.retain(|_| {
                    number += 1;
                    number % 10 != 0
                }),
                (Self::Created, Answer::Response(response)) if response.status == 201 => {
                    response.status = 200;
                }
                (Self::Generation, Answer::Response(response)) => {
                    if let Content::Json(body) = &mut response.body
                        && body["kind"] == "ReplicaSet"
                    {
                        body["metadata"]["generation"] = 1.into();
                    }
                }
                _ => {}
            }
        }
    }
}

/// Changes the body, if it is a JSON object.
fn change(request: &mut Request, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    if let Ok(Value::Object(mut body)) = serde_json::from_slice(&request.body) {
        change(&mut body);
        request.body = Value::from(body).to_string().into_bytes();
    }
}

fn drop_parameter(request: &mut Request, start: &str) {
    if let Some((path, query)) = request.target.split_once('?') {
        let kept = query
            .split('&')
            .filter(|parameter| !parameter.starts_with(start));
        let kept: Vec<_> = kept.collect();
        request.target = format!("{path}?{}", kept.join("&"));
    }
}
