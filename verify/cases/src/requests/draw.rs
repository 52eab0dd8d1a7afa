//! Generates random sequences of API requests, called programs.
//!
//! Guarantees:
//! - A seed always yields the same program.
//! - A slow watch cache does not change the responses. Before each request that can read an old state from a
//!   watch cache, a program contains a request that waits until the cache has the latest state.

mod apply;

use std::fmt::Write as _;

use fastrand::Rng;
use harness::draw::Choose as _;
use serde_json::{Value, json};

use super::{
    objects::{self, KINDS, Kind},
    patches,
    request::Request,
};

/// Maximum number of watches in a program.
const WATCHES: usize = 4;

/// Commands at the start of each generated program. They store initial values in the variables for revisions
/// and uids.
const FIRST: &str = r#"> DO POST /api/v1/namespaces/$ns/configmaps
  {"metadata": {"name": "first"}}

> SET rv1 /metadata/resourceVersion

> SET rv2 /metadata/resourceVersion

> SET rv3 /metadata/resourceVersion

> SET state /metadata/resourceVersion

> SET uid1 /metadata/uid"#;

/// Name of the object whose change marks the end of a watch.
///
/// The last commands of a program change this object for each watch, and read the events of the watch up to
/// the change. If the watch selects only another name, the object with that name is changed instead.
const MARKED: &str = "marked";

/// Requests of metadata only.
const PARTIAL: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// A random program of requests, as a sequence of groups of commands ([`Unit`]).
///
/// [`Program::text`] adds commands that read the events of all watches.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) units: Vec<Unit>,
    kinds: Vec<&'static Kind>,
}

/// Commands that stay together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The commands, as the text of a case.
    text: String,
    /// The watch that the commands start.
    watched: Option<Watched>,
}

/// A watch, and an object that it selects.
#[derive(Clone, Debug)]
struct Watched {
    stream: String,
    kind: &'static Kind,
    name: &'static str,
    /// Labels that the object needs. Null removes a label.
    labels: Value,
}

struct Draw {
    random: Rng,
    /// The kinds that this program uses.
    kinds: Vec<&'static Kind>,
    watches: usize,
    /// Whether a drawn request lets the server generate an object name. At most one request does so, because
    /// the order of two generated names would be random.
    has_generated: bool,
}

impl Program {
    /// Draws a program of `length` units.
    pub(super) fn draw(seed: u64, length: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        let number = random.usize(1..3);
        let kinds = (0..number).map(|_| random.weighted(&KINDS)).collect();
        let mut draw = Draw {
            random,
            kinds,
            watches: 0,
            has_generated: false,
        };
        let units = (0..length).map(|_| draw.unit()).collect();
        Self {
            units,
            kinds: draw.kinds,
        }
    }

    /// Returns the program as the text of a case.
    pub(super) fn text(&self, title: &str) -> String {
        let mut blocks = vec![format!("# {title}")];
        blocks.push(FIRST.to_owned());
        blocks.extend(self.units.iter().map(|unit| unit.text.clone()));
        blocks.extend(self.kinds.iter().map(|kind| fresh(kind, "")));
        let watched = self.units.iter().filter_map(|unit| unit.watched.as_ref());
        blocks.extend(watched.map(Watched::read));
        format!("{}\n", blocks.join("\n\n"))
    }
}

/// Returns a list request without `resourceVersion`. The server responds when the watch cache has the latest
/// state.
fn fresh(kind: &Kind, word: &str) -> String {
    format!("> {word}GET {}", kind.path)
}

impl Watched {
    /// Returns the commands that change the watched object and then read all events up to this change.
    fn read(&self) -> String {
        let Self {
            stream,
            kind,
            name,
            labels,
        } = self;
        let mut labels = labels.clone();
        labels["marked"] = stream.as_str().into();
        let mut create = Request::new("POST", kind.path);
        create.body(&kind.minimal(name));
        let mut change = Request::new("PATCH", &format!("{}/{name}", kind.path));
        change.header("Content-Type", "application/merge-patch+json");
        change.body(&json!({"metadata": {"labels": labels}}));
        format!(
            "{}\n\n{}\n\n> EVENTS {stream} until marked",
            create.text, change.text
        )
    }
}

impl Unit {
    fn of(text: String) -> Self {
        Self {
            text,
            watched: None,
        }
    }

    /// Adds the token of a user without permissions to the last request of this unit.
    ///
    /// A unit can contain two requests: a list that waits until the watch cache is up to date, and the actual
    /// list. The first of them stays unchanged, because a rejected list would not wait.
    fn forbid(&mut self) {
        let start = self.text.rfind("\n\n> GET ").map_or(0, |at| at + 2);
        let end = self.text[start..].find('\n');
        let end = end.map_or(self.text.len(), |end| start + end);
        self.text
            .insert_str(end, "\n> Authorization: Bearer $guest");
    }
}

impl Draw {
    fn unit(&mut self) -> Unit {
        let kind = *self.random.one(&self.kinds);
        let act: fn(&mut Self, &'static Kind) -> Unit = match self.random.u32(0..100) {
            0..18 => Self::create,
            18..25 => Self::get,
            25..33 => Self::list,
            33..45 => Self::update,
            45..60 => Self::patch,
            60..80 => Self::apply,
            80..87 => Self::delete,
            87..88 => Self::delete_collection,
            88..92 => Self::watch,
            92..95 => Self::status,
            _ => Self::scale,
        };
        let mut unit = act(self, kind);
        if self.random.chance(3) && unit.watched.is_none() {
            unit.forbid();
        }
        unit
    }

    /// Adds commands that store values of the response.
    fn stored(&mut self, mut request: Request) -> Unit {
        if self.random.chance(50) {
            let name = objects::revision(&mut self.random);
            let _ = write!(request.text, "\n\n> SET {name} /metadata/resourceVersion");
        }
        if self.random.chance(10) {
            request.text.push_str("\n\n> SET uid1 /metadata/uid");
        }
        Unit::of(request.text)
    }

    /// Adds parameters that each write may have.
    fn write_parameters(&mut self, request: &mut Request) {
        if self.random.chance(5) {
            request.query("dryRun=All");
        }
        if self.random.chance(5) {
            request.query("fieldManager=m");
        }
        if self.random.chance(5) {
            let value = *self.random.one(&["Strict", "Warn", "Ignore", "Wrong"]);
            request.query(&format!("fieldValidation={value}"));
        }
    }

    fn create(&mut self, kind: &'static Kind) -> Unit {
        let mut request = Request::new("POST", kind.path);
        self.write_parameters(&mut request);
        let name = objects::name(&mut self.random);
        let mut object = kind.object(&mut self.random, name);
        if self.random.chance(5) && object["metadata"]["name"] != "" {
            object["metadata"]["generateName"] = "g-".into();
        } else if self.random.chance(3) && !self.has_generated {
            self.has_generated = true;
            // It is valid, because an error would contain the generated name.
            object = kind.minimal("");
            object["metadata"] = json!({"generateName": "g-"});
        }
        if self.random.chance(2) {
            object["metadata"]["resourceVersion"] = "$rv1".into();
        }
        request.body(&object);
        self.stored(request)
    }

    fn get(&mut self, kind: &'static Kind) -> Unit {
        let name = objects::name(&mut self.random);
        let mut request = Request::new("GET", &format!("{}/{name}", kind.path));
        if self.random.chance(20) {
            request.header("Accept", PARTIAL);
        }
        self.stored(request)
    }

    fn update(&mut self, kind: &'static Kind) -> Unit {
        let name = objects::name(&mut self.random);
        let mut request = Request::new("PUT", &format!("{}/{name}", kind.path));
        self.write_parameters(&mut request);
        let mut object = kind.object(&mut self.random, name);
        self.preconditions(&mut object);
        request.body(&object);
        self.stored(request)
    }

    /// Adds the revision and the uid of earlier responses as preconditions, each with some probability.
    fn preconditions(&mut self, object: &mut Value) {
        if self.random.chance(50) {
            let name = objects::revision(&mut self.random);
            object["metadata"]["resourceVersion"] = format!("${name}").into();
        }
        if self.random.chance(10) {
            object["metadata"]["uid"] = "$uid1".into();
        }
    }

    fn patch(&mut self, kind: &'static Kind) -> Unit {
        let name = objects::name(&mut self.random);
        let part = if kind.has_status && self.random.chance(15) {
            "/status"
        } else {
            ""
        };
        let mut request = Request::new("PATCH", &format!("{}/{name}{part}", kind.path));
        self.write_parameters(&mut request);
        let (content_type, document) = patches::patch(&mut self.random, kind);
        request.header("Content-Type", content_type);
        request.body(&document);
        self.stored(request)
    }

    fn status(&mut self, kind: &'static Kind) -> Unit {
        if kind.name == "Service" {
            return self.get(kind);
        }
        let name = objects::name(&mut self.random);
        let mut request = Request::new("PUT", &format!("{}/{name}/status", kind.path));
        let mut object = kind.object(&mut self.random, name);
        object["status"] = objects::status(&mut self.random, kind);
        self.preconditions(&mut object);
        request.body(&object);
        self.stored(request)
    }

    fn scale(&mut self, kind: &'static Kind) -> Unit {
        if !kind.has_scale {
            return self.get(kind);
        }
        let name = objects::name(&mut self.random);
        let path = format!("{}/{name}/scale", kind.path);
        if self.random.bool() {
            return self.stored(Request::new("GET", &path));
        }
        let mut request = Request::new("PUT", &path);
        let mut object = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": name, "namespace": "$ns"}, "spec": {"replicas": self.random.u32(0..4)},
        });
        self.preconditions(&mut object);
        request.body(&object);
        self.stored(request)
    }

    fn delete(&mut self, kind: &'static Kind) -> Unit {
        let name = objects::name(&mut self.random);
        let mut request = Request::new("DELETE", &format!("{}/{name}", kind.path));
        if self.random.chance(20) {
            let seconds = *self.random.one(&["0", "1", "30"]);
            request.query(&format!("gracePeriodSeconds={seconds}"));
        }
        if self.random.chance(5) {
            request.query("dryRun=All");
        }
        if self.random.chance(25) {
            let mut preconditions = json!({});
            if self.random.bool() {
                let name = objects::revision(&mut self.random);
                preconditions["resourceVersion"] = format!("${name}").into();
            }
            if self.random.chance(40) {
                preconditions["uid"] = "$uid1".into();
            }
            request.body(&json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
            }));
        }
        self.stored(request)
    }

    fn delete_collection(&mut self, kind: &'static Kind) -> Unit {
        let mut request = Request::new("DELETE", kind.path);
        self.selectors(&mut request);
        if self.random.chance(10) {
            request.query("dryRun=All");
        }
        Unit::of(request.text)
    }

    /// Adds selectors, and returns the name and the labels of an object that they select.
    fn selectors(&mut self, request: &mut Request) -> (&'static str, Value) {
        let (mut name, mut labels) = (MARKED, json!({}));
        if self.random.chance(40) {
            let (selector, of) = self
                .random
                .one(&[
                    ("app%3Da", json!({"app": "a"})),
                    ("app!%3Da", json!({"app": null})),
                    ("app%20in%20(a,b)", json!({"app": "a"})),
                    ("!tier", json!({"tier": null})),
                    ("tier", json!({"tier": "a"})),
                    ("app%3Da,tier%3Db", json!({"app": "a", "tier": "b"})),
                    ("app%20notin%20(a)", json!({"app": "b"})),
                    ("app%3D(", json!({})),
                ])
                .clone();
            request.query(&format!("labelSelector={selector}"));
            labels = of;
        }
        if self.random.chance(15) {
            let (selector, of) = *self.random.one(&[
                ("metadata.name%3Da", "a"),
                ("metadata.name!%3Da", MARKED),
                ("metadata.namespace%3D$ns", MARKED),
                ("spec.unknown%3Da", MARKED),
            ]);
            request.query(&format!("fieldSelector={selector}"));
            name = of;
        }
        (name, labels)
    }

    /// Draws a list request. Before this request, adds another list request, which waits until the watch
    /// cache has the latest state.
    fn list(&mut self, kind: &'static Kind) -> Unit {
        let mut request = Request::new("GET", kind.path);
        self.selectors(&mut request);
        let version = self.random.weighted(&[
            (50, ""),
            (15, "resourceVersion=0"),
            (5, "resourceVersion=$rv1"),
            (5, "resourceVersion=$state"),
            (10, "resourceVersion=$rv2&resourceVersionMatch=NotOlderThan"),
            (5, "resourceVersion=$rv1&resourceVersionMatch=Exact"),
            (5, "resourceVersion=$state&resourceVersionMatch=Exact"),
            (2, "resourceVersion=0&resourceVersionMatch=Exact"),
            (2, "resourceVersionMatch=Exact"),
            (2, "resourceVersion=x"),
        ]);
        let (is_paged, is_next) = (self.random.chance(30), self.random.chance(15));
        if is_paged || is_next {
            let limit = self.random.u32(1..3);
            request.query(&format!("limit={limit}"));
        }
        if is_next {
            request.query("continue=$next");
        } else if !version.is_empty() {
            request.query(version);
        }
        if self.random.chance(15) {
            request.header("Accept", PARTIAL_LIST);
        }
        if is_paged || is_next {
            request.text.push_str("\n\n> SET next /metadata/continue");
        }
        if self.random.chance(30) {
            // Only lists and watches use the revision of a list: other programs have changed it too.
            request
                .text
                .push_str("\n\n> SET state /metadata/resourceVersion");
        }
        Unit::of(format!("{}\n\n{}", fresh(kind, "DO "), request.text))
    }

    fn watch(&mut self, kind: &'static Kind) -> Unit {
        if self.watches == WATCHES {
            return self.list(kind);
        }
        self.watches += 1;
        let stream = format!("w{}", self.watches);
        let mut request = Request::new(&format!("WATCH {stream}"), kind.path);
        request.query("watch=1");
        let (name, labels) = self.selectors(&mut request);
        let version = self.random.weighted(&[
            (20, ""),
            (15, "resourceVersion=0"),
            (30, "resourceVersion=$rv1"),
            (10, "resourceVersion=$state"),
            (
                20,
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            ),
            (3, "sendInitialEvents=true"),
            (2, "resourceVersion=x"),
            (3, "resourceVersion=$rv1&resourceVersionMatch=NotOlderThan"),
        ]);
        if !version.is_empty() {
            request.query(version);
        }
        if self.random.chance(15) {
            request.header("Accept", PARTIAL);
        }
        let mut unit = Unit::of(format!("{}\n\n{}", fresh(kind, "DO "), request.text));
        unit.watched = Some(Watched {
            stream,
            kind,
            name,
            labels,
        });
        unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_waits_for_the_latest_state_is_not_forbidden() {
        let header = "\n> Authorization: Bearer $guest";
        for (start, end) in [
            ("> GET /a\n\n> GET /b", ""),
            ("> PUT /a", "\n  {}\n\n> SET rv1 /b"),
        ] {
            let mut unit = Unit::of(format!("{start}{end}"));
            unit.forbid();
            assert_eq!(unit.text, format!("{start}{header}{end}"));
        }
    }

    #[test]
    fn programs_have_requests_of_both_users() {
        let drawn = (1..21).map(|seed| Program::draw(seed, 30).text("t"));
        let guests = drawn.filter(|text| text.contains("$guest")).count();
        assert!((1..20).contains(&guests), "{guests} of 20");
    }
}
