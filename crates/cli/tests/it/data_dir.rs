//! Tests `serve --data-dir`: the objects and revisions of a server after a restart or a kill.
//!
//! Also tests that a server does not start on an unusable directory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::Pin,
};

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::{
    Api, Client, Error,
    api::{DeleteParams, ListParams, PostParams, WatchParams},
    core::WatchEvent,
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::{
    binary::{LONG, Running, file, run},
    serve::client,
};

const WRITERS: usize = 4;

const KILLS: usize = 6;

/// Deletes the data directory `name` if it exists, and returns its path.
fn fresh(name: &str) -> PathBuf {
    let directory = file(name);
    drop(fs::remove_dir_all(&directory));
    directory
}

/// Starts `serve`, but does not wait until it is ready.
///
/// Returns the process and the path of its kubeconfig.
fn start(directory: &Path, flags: &[&str]) -> (Running, PathBuf) {
    let kubeconfig = directory.with_extension("yaml");
    let serve = [
        "serve",
        "--data-dir",
        directory.to_str().unwrap(),
        "--kubeconfig-out",
        kubeconfig.to_str().unwrap(),
    ];
    (Running::start(&[&serve, flags].concat()), kubeconfig)
}

/// Starts `serve`, and waits until it is ready.
///
/// Returns the process, a client, and the output line about the data directory.
async fn serving_on(directory: &Path, flags: &[&str]) -> (Running, Client, String) {
    let (mut running, kubeconfig) = start(directory, flags);
    let found = running.line_with("data: ").await;
    let last = running.line_with("Ctrl-C").await;
    assert!(last.contains("stay in the data directory"), "{last}");
    assert!(!last.contains("in memory"), "{last}");
    let client = client(&kubeconfig).await;
    (running, client, found)
}

fn config_map(name: &str, value: u64) -> ConfigMap {
    let map = json!({
        "metadata": {"name": name},
        "data": {"value": value.to_string(), "padding": value.to_string().repeat(100)},
    });
    serde_json::from_value(map).unwrap()
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn revision_of(map: &ConfigMap) -> u64 {
    let revision = map.metadata.resource_version.as_ref();
    revision.unwrap().parse().unwrap()
}

/// Selects all config maps but those that the server creates in each namespace.
fn written() -> ListParams {
    ListParams::default().fields("metadata.name!=kube-root-ca.crt")
}

/// Returns the name of each config map and the number that it contains, and the revision of the list.
///
/// Asserts that no config map is stored only in part.
async fn stored(api: &Api<ConfigMap>) -> (BTreeMap<String, u64>, u64) {
    let list = api.list(&written()).await.unwrap();
    let revision = list.metadata.resource_version.unwrap().parse().unwrap();
    let whole = |map: ConfigMap| {
        let data = map.data.unwrap();
        assert_eq!(data["padding"], data["value"].repeat(100));
        (map.metadata.name.unwrap(), data["value"].parse().unwrap())
    };
    (list.items.into_iter().map(whole).collect(), revision)
}

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<ConfigMap>, Error>> + Send>>;

async fn watch_from(api: &Api<ConfigMap>, revision: u64) -> Events {
    let params = WatchParams::default();
    let events = api.watch(&params, &revision.to_string()).await.unwrap();
    Box::pin(events)
}

/// Waits for the next watch event, and returns its type and revision, such as `added 6`.
async fn next_event(events: &mut Events) -> String {
    match timeout(LONG, events.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap()
    {
        WatchEvent::Added(map) => format!("added {}", revision_of(&map)),
        WatchEvent::Modified(map) => format!("modified {}", revision_of(&map)),
        WatchEvent::Deleted(map) => format!("deleted {}", revision_of(&map)),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("{} {}", status.code, status.reason),
    }
}

#[tokio::test]
async fn after_a_kill_watches_resume_from_the_last_revision_and_no_older_one() {
    let directory = fresh("resumed");
    let (server, client, found) = serving_on(&directory, &[]).await;
    assert!(found.contains("resumed, at revision 1"), "{found}");
    let api = maps(&client);
    let mut seen = 0;
    for name in ["a", "b", "c"] {
        let map = config_map(name, 1);
        let made = api.create(&PostParams::default(), &map).await;
        seen = revision_of(&made.unwrap());
    }
    assert_eq!(seen, 4);
    server.kill().await;

    let (server, client, found) = serving_on(&directory, &[]).await;
    assert!(found.contains("at revision 4"), "{found}");
    let api = maps(&client);
    let mut events = watch_from(&api, seen).await;
    let mut older = watch_from(&api, seen - 1).await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &config_map("d", 1))
        .await
        .unwrap();
    assert_eq!(next_event(&mut events).await, "deleted 5");
    assert_eq!(next_event(&mut events).await, "added 6");
    assert_eq!(next_event(&mut older).await, "410 Expired");
    server.end_by("-INT").await.with_code(130);
}

/// Possible states of a config map after a kill: the acknowledged state and, if any, that of a pending write.
///
/// A state is the number in the config map, or `None` if the config map does not exist.
type States = Vec<Option<u64>>;

/// A client that writes config maps, and the possible states of each config map on the server.
#[derive(Default)]
struct Writer {
    number: usize,
    known: BTreeMap<String, States>,
    /// Highest revision that the server has returned to this client.
    revision: u64,
}

/// Creates, replaces and deletes config maps until the server is killed.
///
/// Sends a message to `acknowledged` for each successful write, unless the channel is full.
async fn write(api: Api<ConfigMap>, mut writer: Writer, acknowledged: mpsc::Sender<()>) -> Writer {
    let Writer {
        number,
        known,
        revision,
    } = &mut writer;
    for nth in 0.. {
        let name = format!("w{number}-{}", nth % 5);
        let known = known.entry(name.clone()).or_insert_with(|| vec![None]);
        let next = match (known[0], nth % 3) {
            (Some(_), 0) => None,
            (last, _) => Some(last.unwrap_or(0) + 1),
        };
        known.push(next);
        let done = match (known[0], next) {
            (_, None) => api.delete(&name, &DeleteParams::default()).await.map(drop),
            (before, Some(value)) => {
                let map = config_map(&name, value);
                let params = PostParams::default();
                let stored = match before {
                    None => api.create(&params, &map).await,
                    Some(_) => api.replace(&name, &params, &map).await,
                };
                stored.map(|map| *revision = revision_of(&map))
            }
        };
        match done {
            Ok(()) => *known = vec![next],
            Err(Error::Api(refusal)) => panic!("{name}: {refusal}"),
            // The server was killed.
            Err(_) => break,
        }
        // The send fails if the channel is full. The test does not read the channel after the kill.
        let _ = acknowledged.try_send(());
    }
    writer
}

/// Returns the revision of the last event before the server is killed, or `last` if there is no event.
async fn last_received(mut events: Events, mut last: u64) -> u64 {
    while let Some(Ok(event)) = events.next().await {
        let (WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map)) = event
        else {
            panic!("{event:?}");
        };
        assert!(revision_of(&map) > last);
        last = revision_of(&map);
    }
    last
}

#[tokio::test]
async fn acknowledged_writes_survive_kills_during_writes() {
    let directory = fresh("killed");
    let numbered = |number| Writer {
        number,
        ..Writer::default()
    };
    let mut clients: Vec<Writer> = (0..WRITERS).map(numbered).collect();
    let mut seen = 1;
    let mut received = 0;
    let mut revision = 0;
    for round in 0..=KILLS {
        let (server, client, _) = serving_on(&directory, &[]).await;
        let api = maps(&client);
        let (mut stored, now) = stored(&api).await;
        assert!(
            now >= revision,
            "round {round}: {now} is lower than {revision}"
        );
        for (name, states) in clients.iter_mut().flat_map(|writer| &mut writer.known) {
            let value = stored.remove(name);
            let possible = states.contains(&value);
            assert!(
                possible,
                "round {round}: {name} is {value:?}, not {states:?}"
            );
            *states = vec![value];
        }
        assert!(
            stored.is_empty(),
            "round {round}: no client wrote {stored:?}"
        );
        assert!(seen <= now, "every delivered event is stored");
        if seen < now {
            let mut events = watch_from(&api, seen).await;
            assert_eq!(
                next_event(&mut events).await,
                "410 Expired",
                "round {round}"
            );
        }
        let mut watching = JoinSet::new();
        watching.spawn(last_received(watch_from(&api, now).await, now));
        let (sender, mut acknowledged) = mpsc::channel(1_000);
        let mut writers = JoinSet::new();
        for writer in clients.drain(..) {
            writers.spawn(write(api.clone(), writer, sender.clone()));
        }
        drop(sender);
        for _ in 0..20 + 7 * round {
            let answer = timeout(LONG, acknowledged.recv()).await.unwrap();
            answer.expect("the clients write until the server has ended");
        }
        server.kill().await;
        clients = timeout(LONG, writers.join_all()).await.unwrap();
        revision = clients
            .iter()
            .fold(now, |last, writer| last.max(writer.revision));
        seen = timeout(LONG, watching.join_all()).await.unwrap()[0];
        received += seen - now;
    }
    assert!(revision > 100, "the clients have written: {revision}");
    assert!(received > 0, "the watches received events");
}

#[tokio::test]
async fn the_same_command_again_seeds_nothing_twice_and_continues() {
    let directory = fresh("again");
    let flags = [
        "--seed-objects",
        "pods=300",
        "--churn",
        "200/s",
        "--controllers",
    ];
    let (server, client, _) = serving_on(&directory, &flags).await;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join("objects.redb")), 0o600);
    let pods: Api<Pod> = Api::all(client);
    let before = pods.list(&ListParams::default()).await.unwrap().items.len();
    assert!((299..=301).contains(&before), "{before}");
    server.kill().await;

    let (mut server, kubeconfig) = start(&directory, &flags);
    let line = server.line_with("seeded: ").await;
    assert!(line.contains(" were there) in "), "{line}");
    server.line_with("Ctrl-C").await;
    let pods: Api<Pod> = Api::all(crate::serve::client(&kubeconfig).await);
    let after = pods.list(&ListParams::default()).await.unwrap().items.len();
    assert!((300..=302).contains(&after), "{after}");
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn seeding_interrupted_by_a_kill_is_completed_by_the_next_start() {
    let directory = fresh("half-seeded");
    let flags = ["--seed-objects", "configmaps=3000"];
    for _ in 0..2 {
        let (mut server, _) = start(&directory, &flags);
        server.line_with("Seeding").await;
        server.kill().await;
    }
    let (server, client, _) = serving_on(&directory, &flags).await;
    let maps: Api<ConfigMap> = Api::all(client);
    let list = maps.list_metadata(&written()).await.unwrap();
    assert_eq!(list.items.len(), 3_000);
    server.end_by("-INT").await.with_code(130);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_store_restored_by_a_fault_stays_restored_and_no_fault_restores_before_the_start() {
    let directory = fresh("put-back");
    let flags = ["--seed-objects", "nodes=10", "--fault", "restart back 4"];
    let (server, client, _) = serving_on(&directory, &flags).await;
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
    let list = nodes.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 6);
    server.kill().await;

    let (server, client, found) = serving_on(&directory, &[]).await;
    assert!(found.contains("at revision 7"), "{found}");
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
    let list = nodes.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 6);
    server.end_by("-INT").await.with_code(130);

    let shown = directory.to_str().unwrap();
    let ended = run(&["serve", "--data-dir", shown, "--fault", "restart back 4"]).await;
    let expected = "error: --fault: fault plan, line 1, column 1: The resourceVersion for the provided list is too old. (a data directory has no revisions from before this start)\n";
    assert_eq!(ended.with_code(1).err, expected);
}

#[track_caller]
fn one_line(err: &str, says: &str) {
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("error: ") && err.contains(says), "{err}");
}

#[tokio::test]
async fn an_unusable_directory_is_rejected_in_one_line() {
    let directory = fresh("refused");
    let (server, _, _) = serving_on(&directory, &[]).await;
    let refused = async |path: &Path, says: &str| {
        let ended = run(&["serve", "--data-dir", path.to_str().unwrap()]).await;
        let ended = ended.with_code(1);
        one_line(&ended.err, says);
        assert!(
            ended.err.trim_end().ends_with("with --data-dir"),
            "{}",
            ended.err
        );
        assert_eq!(ended.out, "", "no output before the check");
    };
    refused(&directory, "another server uses it").await;
    server.kill().await;

    let objects = directory.join("objects.redb");
    refused(&objects, "is not a directory").await;
    refused(&objects.join("below"), "is not a directory").await;
    let sound = fs::read(&objects).unwrap();
    fs::write(&objects, "a shopping list").unwrap();
    refused(&directory, "is not a store that this server can read").await;
    let mut damaged = sound.clone();
    damaged[4096..8192].fill(0xA5);
    fs::write(&objects, &damaged).unwrap();
    refused(&directory, "is damaged").await;
    fs::write(&objects, &sound).unwrap();
    let (server, _, _) = serving_on(&directory, &[]).await;
    server.end_by("-TERM").await.with_code(143);
}
