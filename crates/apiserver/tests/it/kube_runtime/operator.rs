//! Tests an operator with a finalizer that applies what it owns, while requests fail, watches end, the server restarts,
//! and another client changes the same objects.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube_client::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use kube_derive::{CustomResource, KubeSchema};
use kube_informer_apiserver::{Match, Server};
use kube_runtime::Controller;
use kube_runtime::controller::Action;
use kube_runtime::finalizer::{self, Event, finalizer};
use kube_runtime::watcher::Config;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client;
use crate::ask::builder;

const FINALIZER: &str = "notes.example.com/page";

/// The manager of the operator's fields.
const OPERATOR: &str = "note-operator";

/// Names of the objects.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Number of random actions of a run.
const ACTIONS: usize = 40;

/// Time after which all notes are reconciled again.
///
/// kube-rs loses two kinds of changes after a watch that can't continue: the watcher reports no deletion that it has
/// missed, and the controller drops a new object of the list, which it looks up before its store has the list.
const AGAIN: Duration = Duration::from_secs(60);

/// Virtual seconds after which the objects must be as desired. The pause after a failed watch grows to 30 s.
const SETTLED: usize = 300;

#[derive(Clone, Debug, CustomResource, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Note",
    namespaced,
    status = "NoteStatus",
    crates(kube_core = "kube_core")
)]
#[x_kube(crates(kube_core = "kube_core"))]
struct NoteSpec {
    text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct NoteStatus {
    text: String,
}

fn notes(server: &Server) -> Api<Note> {
    Api::default_namespaced(client(server))
}

fn maps(server: &Server) -> Api<ConfigMap> {
    Api::default_namespaced(client(server))
}

/// Applies a config map with the text of the note, and the status of the note.
async fn apply(note: Arc<Note>, client: Client) -> Result<Action, kube_client::Error> {
    let params = PatchParams::apply(OPERATOR).force();
    let name = note.name_any();
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [note.controller_owner_ref(&())]},
        "data": {"text": note.spec.text},
    });
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.patch(&name, &params, &Patch::Apply(&map)).await?;
    let status = json!({
        "apiVersion": Note::api_version(&()),
        "kind": Note::kind(&()),
        "status": NoteStatus { text: note.spec.text.clone() },
    });
    let notes: Api<Note> = Api::default_namespaced(client);
    notes
        .patch_status(&name, &params, &Patch::Apply(&status))
        .await?;
    Ok(Action::await_change())
}

async fn clean_up(note: Arc<Note>, client: Client) -> Result<Action, kube_client::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    match maps
        .delete(&note.name_any(), &DeleteParams::default())
        .await
    {
        Err(kube_client::Error::Api(status)) if status.is_not_found() => {}
        deleted => drop(deleted?),
    }
    Ok(Action::await_change())
}

type Failure = finalizer::Error<kube_client::Error>;

async fn reconcile(note: Arc<Note>, client: Arc<Client>) -> Result<Action, Failure> {
    let client = Client::clone(&client);
    let notes: Api<Note> = Api::default_namespaced(client.clone());
    finalizer(&notes, FINALIZER, note, |event| async move {
        match event {
            Event::Apply(note) => apply(note, client).await,
            Event::Cleanup(note) => clean_up(note, client).await,
        }
    })
    .await
}

/// Starts the operator, which ends when the returned set is dropped.
fn operator(server: &Server) -> JoinSet<()> {
    let config = Config::default();
    let again = stream::unfold((), |()| async {
        tokio::time::sleep(AGAIN).await;
        Some(((), ()))
    });
    let running = Controller::new(notes(server), config.clone())
        .owns(maps(server), config)
        .reconcile_all_on(Box::pin(again))
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client(server)),
        );
    let mut tasks = JoinSet::new();
    tasks.spawn(running.for_each(|_| std::future::ready(())));
    tasks
}

/// Performs one action of a user, of another client, or of the server.
async fn act(server: &Server, rng: &mut Rng, number: usize) {
    let name = NAMES[rng.usize(..NAMES.len())];
    let (notes, maps, faults) = (notes(server), maps(server), server.faults());
    let text = format!("text {number}");
    let merge = PatchParams {
        field_manager: Some("rival".to_owned()),
        ..PatchParams::default()
    };
    // A client whose request fails tries something else later.
    match rng.u32(..100) {
        0..40 => {
            let note = Note::new(name, NoteSpec { text });
            let params = PatchParams::apply("user").force();
            let _ = notes.patch(name, &params, &Patch::Apply(&note)).await;
        }
        40..50 => drop(notes.delete(name, &DeleteParams::default()).await),
        50..65 => {
            let data = json!({"data": {"text": "rival", "other": text}});
            let _ = maps.patch(name, &merge, &Patch::Merge(&data)).await;
        }
        65..72 => drop(maps.delete(name, &DeleteParams::default()).await),
        72..85 => {
            let status = [409, 429, 500, 503][rng.usize(..4)];
            faults.answer(Match::any(), status).times(rng.u64(1..5));
        }
        85..90 => faults.restart(),
        90..94 => faults.cut_watches(),
        94..97 => faults.break_watches(),
        _ => faults.expire_history(),
    }
}

/// Returns what is not as the operator wants it.
fn open(server: &Server) -> Vec<String> {
    let mut open = Vec::new();
    for name in NAMES {
        let key = format!("default/{name}");
        let note = server.get("example.com/v1", "notes", &key);
        let map = server.get("v1", "configmaps", &key);
        let Some(note) = note else {
            open.extend(map.map(|_| format!("{name}: the map is left")));
            continue;
        };
        let text = &note["spec"]["text"];
        let map = map.unwrap_or_default();
        let owners = map["metadata"]["managedFields"].as_array();
        let mut owners = owners.into_iter().flatten();
        let is_owner = |entry: &Value| {
            let owned = &entry["fieldsV1"]["f:data"];
            entry["manager"] == OPERATOR && *owned == json!({"f:text": {}})
        };
        let is_done = note["metadata"]["deletionTimestamp"].is_null()
            && note["status"]["text"] == *text
            && map["data"]["text"] == *text
            && map["metadata"]["ownerReferences"][0]["uid"] == note["metadata"]["uid"]
            && owners.any(is_owner);
        if !is_done {
            open.push(format!("{name}: {note} {map}"));
        }
    }
    open
}

/// Runs random actions, and returns what the operator has not done in time.
async fn run(seed: u64) -> Vec<String> {
    let server = builder().crd(Note::crd()).build();
    let mut rng = Rng::with_seed(seed);
    let operator = operator(&server);
    for number in 0..ACTIONS {
        act(&server, &mut rng, number).await;
        tokio::time::sleep(Duration::from_millis(rng.u64(..3_000))).await;
    }
    server.faults().clear_answers();
    for _ in 0..SETTLED {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if open(&server).is_empty() {
            break;
        }
    }
    drop(operator);
    let mut left = open(&server);
    if !left.is_empty() {
        left.push(server.requests().to_string());
    }
    left
}

/// The seeds of the runs: those of the environment variable `CHAOS`, such as `1..1001`, or a few.
fn seeds() -> Range<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
    let range = std::env::var("CHAOS").unwrap_or_else(|_| "1..11".to_owned());
    let (first, end) = range.split_once("..").expect("a range such as 1..1001");
    first.parse().unwrap()..end.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_applies_converges_despite_failures_and_rivals() {
    for seed in seeds() {
        let open = run(seed).await;
        assert!(open.is_empty(), "seed {seed}: {}", open.join("\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_applied_note_has_its_owners_and_conflicts_without_force() {
    let server = builder().crd(Note::crd()).build();
    let notes = notes(&server);
    let note = |text: &str| {
        Note::new(
            "a",
            NoteSpec {
                text: text.to_owned(),
            },
        )
    };
    let by = |manager: &str| PatchParams::apply(manager);
    let first = notes
        .patch("a", &by("x"), &Patch::Apply(&note("1")))
        .await
        .unwrap();
    assert_eq!(
        first.metadata.managed_fields.unwrap()[0].manager.as_deref(),
        Some("x")
    );
    let conflict = notes.patch("a", &by("y"), &Patch::Apply(&note("2"))).await;
    let conflict = conflict.unwrap_err().to_string();
    assert!(
        conflict.contains("conflict with \"x\": .spec.text"),
        "{conflict}"
    );
    let forced = notes
        .patch("a", &by("y").force(), &Patch::Apply(&note("2")))
        .await
        .unwrap();
    assert_eq!(forced.spec.text, "2");
    assert_eq!(
        notes
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}
