//! Tests servers with a data directory.
//!
//! The tests check the objects of a server after a restart, also after the server's process was killed. They
//! also check which data directories a server rejects.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect;
use kube_informer_apiserver::{Kind, OpenError, Scope, Server};
use serde_json::{Value, json};

use crate::ask::{Watch, builder, get, pod, with};

/// Returns the path of a test's data directory, after deleting any directory that exists at this path.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&path));
    path
}

fn open(directory: &Path) -> Server {
    builder().open(directory).unwrap()
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_objects_and_revisions_and_drops_history() {
    let directory = scratch("restart");
    let server = open(&directory);
    assert_eq!(
        server.revision(),
        1,
        "the same as for an empty server without a directory"
    );
    let made = with(&server, "POST", PODS, &pod("a")).await;
    assert_eq!((made.code, made.revision()), (201, "2"));
    with(&server, "POST", PODS, &pod("b")).await;
    let (a, b) = (format!("{PODS}/a"), format!("{PODS}/b"));
    let changed = with(
        &server,
        "PATCH",
        &a,
        &json!({"spec": {"activeDeadlineSeconds": 1}}),
    )
    .await;
    assert_eq!(crate::ask::delete(&server, &b).await.code, 200);
    let before = get(&server, &a).await;
    assert_eq!(before.json, changed.json);
    drop(server);

    let server = open(&directory);
    assert_eq!(server.revision(), 6);
    assert_eq!(get(&server, &a).await.text, before.text, "byte for byte");
    assert_eq!(get(&server, &b).await.code, 404);
    let old = get(
        &server,
        &format!("{PODS}?resourceVersion=4&resourceVersionMatch=Exact"),
    )
    .await;
    assert_eq!(
        old.refusal(),
        "410 Expired: The resourceVersion for the provided list is too old."
    );
    let mut watch = Watch::open(&server, &format!("{PODS}?watch=1&resourceVersion=4")).await;
    expect![[r"
        ERROR 410 Expired: too old resource version: 4 (6)
        end
    "]]
    .assert_eq(&watch.trace().await);

    let mut watch = Watch::open(&server, &format!("{PODS}?watch=1&resourceVersion=6")).await;
    let next = with(&server, "POST", PODS, &pod("c")).await;
    assert_eq!(next.revision(), "7");
    assert_eq!(watch.trace().await, "ADDED c 7\n");
    let uids = [&before, &next].map(|reply| reply.json["metadata"]["uid"].clone());
    assert_ne!(uids[0], uids[1], "a restart does not repeat random numbers");
}

#[test]
fn a_store_restored_to_an_older_revision_keeps_it_after_a_restart() {
    let directory = scratch("put-back");
    let server = open(&directory);
    server.create(pod("kept")).unwrap();
    server.create(pod("deleted")).unwrap();
    let revision = server.revision();
    server.create(pod("undone")).unwrap();
    server.delete("v1", "pods", "default/deleted").unwrap();
    server.faults().restart_at(revision).unwrap();
    let stored = server.list("v1", "pods");
    assert_eq!(stored.len(), 2);
    drop(server);
    let server = open(&directory);
    assert_eq!(
        (server.list("v1", "pods"), server.revision()),
        (stored, revision)
    );
}

#[tokio::test(start_paused = true)]
async fn selectors_match_objects_loaded_at_a_restart() {
    let directory = scratch("selectors");
    let server = open(&directory);
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({"on": node});
        pod["spec"]["nodeName"] = json!(node);
        server.create(pod).unwrap();
    }
    drop(server);
    let server = open(&directory);
    let by_label = get(&server, &format!("{PODS}?labelSelector=on=n1")).await;
    assert_eq!(by_label.names(), ["a"]);
    let by_field = get(&server, &format!("{PODS}?fieldSelector=spec.nodeName=n2")).await;
    assert_eq!(by_field.names(), ["b"]);
}

#[test]
fn seeds_are_stored_in_a_new_directory_only() {
    let directory = scratch("seeds");
    let seeded = || builder().seed([pod("a"), pod("b")]).open(&directory);
    let server = seeded().unwrap();
    assert_eq!(server.revision(), 2);
    server.delete("v1", "pods", "default/a").unwrap();
    drop(server);
    let server = seeded().unwrap();
    assert_eq!((server.revision(), server.list("v1", "pods").len()), (3, 1));
}

#[test]
fn objects_of_an_unserved_kind_are_kept_until_it_is_served() {
    let directory = scratch("unserved");
    let widget = || Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(widget()).open(&directory).unwrap();
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    server.create(object).unwrap();
    drop(server);
    let without = open(&directory);
    without.create(pod("a")).unwrap();
    drop(without);
    let server = builder().kind(widget()).open(&directory).unwrap();
    assert!(
        server
            .get("example.com/v1", "widgets", "default/w")
            .is_some()
    );
}

/// Asserts that a server can't open a data directory.
///
/// Returns the error's text, with the path of the directory replaced by `DIR`.
fn refusal(directory: &Path) -> String {
    let error = match builder().open(directory) {
        Ok(server) => panic!("{server:?} was opened"),
        Err(error) => error,
    };
    let mut said = error.to_string();
    if let Some(source) = std::error::Error::source(&error) {
        said = format!("{said}: {source}");
    }
    said.replace(&directory.display().to_string(), "DIR")
}

#[test]
fn a_directory_in_use_by_another_server_is_rejected() {
    let directory = scratch("one");
    let server = open(&directory);
    expect!["the data directory DIR is in use by another server"].assert_eq(&refusal(&directory));
    server.create(pod("a")).unwrap();
    drop(server);
    assert_eq!(open(&directory).list("v1", "pods").len(), 1);
}

#[test]
fn a_file_that_is_not_a_store_is_rejected_and_kept() {
    let directory = scratch("foreign");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("objects.redb");
    fs::write(&file, "a shopping list").unwrap();
    expect!["DIR/objects.redb is not a store that this server can read: it is not a database"]
        .assert_eq(&refusal(&directory));
    assert_eq!(fs::read(&file).unwrap(), b"a shopping list");

    fs::remove_file(&file).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, "a file").unwrap();
    assert!(matches!(
        builder().open(&directory),
        Err(OpenError::Io { .. })
    ));
    fs::remove_file(&directory).unwrap();
}

#[test]
fn a_read_only_directory_is_rejected() {
    let directory = scratch("read-only");
    drop(open(&directory));
    let mut permissions = fs::metadata(directory.join("lock")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(directory.join("lock"), permissions).unwrap();
    if fs::File::options()
        .write(true)
        .open(directory.join("lock"))
        .is_ok()
    {
        // Permissions don't apply to the superuser. A directory in place of the file has an effect for all
        // users.
        fs::remove_file(directory.join("lock")).unwrap();
        fs::create_dir(directory.join("lock")).unwrap();
    }
    let said = refusal(&directory);
    assert!(
        said.starts_with("the data directory DIR can't be read or written: "),
        "{said}"
    );
}

#[test]
fn a_truncated_or_overwritten_store_is_rejected() {
    let directory = scratch("damaged");
    let server = open(&directory);
    for nth in 0..200 {
        server.create(pod(&format!("p{nth}"))).unwrap();
    }
    drop(server);
    let file = directory.join("objects.redb");
    let sound = fs::read(&file).unwrap();
    let mut refused = 0;
    for nth in 0..40 {
        let mut damaged = sound.clone();
        let at = (sound.len() - 4096) * nth / 40;
        if nth % 2 == 0 {
            damaged.truncate(at);
        } else {
            damaged[at..at + 4096].fill(0xA5);
        }
        fs::write(&file, &damaged).unwrap();
        match builder().open(&directory) {
            Ok(server) => assert_eq!(server.list("v1", "pods").len(), 200, "at {at}"),
            Err(OpenError::Damaged { .. } | OpenError::Foreign { .. }) => refused += 1,
            Err(error) => panic!("at {at}: {error}"),
        }
    }
    assert!(refused > 20, "{refused}");
    fs::write(&file, &sound).unwrap();
    assert_eq!(open(&directory).list("v1", "pods").len(), 200);
}

const WRITERS: usize = 4;
const KILLS: u64 = 12;
const CHILD: &str = "persistence::write_until_killed";

/// Writes pods until the test `acknowledged_writes_survive_a_kill` kills this process.
///
/// Prints a line before each write, and another line after the server has acknowledged the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes for ever; `acknowledged_writes_survive_a_kill` runs it"]
async fn write_until_killed() {
    let mut input = String::new();
    std::io::stdin().read_line(&mut input).unwrap();
    let (seed, directory) = input.trim_end().split_once(' ').unwrap();
    let server = open(Path::new(directory));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let server = server.clone();
        let seed = seed.parse::<u64>().unwrap() * 100 + writer as u64;
        writers.spawn(async move { write(&server, writer, seed).await });
    }
    writers.join_all().await;
}

async fn write(server: &Server, writer: usize, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let say = |line: String| writeln!(std::io::stdout().lock(), "\n{line}").unwrap();
    for value in seed * 1_000_000.. {
        let name = format!("w{writer}-{}", rng.usize(..5));
        let uri = format!("{PODS}/{name}");
        if rng.usize(..4) == 0 {
            say(format!("try {name} -"));
            let reply = crate::ask::delete(server, &uri).await;
            assert!([200, 404].contains(&reply.code), "{reply:?}");
            say(format!("done {name} - {}", server.revision()));
            continue;
        }
        // The value is longer than a page of the store, so a partial write is detected.
        let padding = value.to_string().repeat(rng.usize(1..1_000));
        let mut pod = pod(&name);
        pod["metadata"]["labels"] = json!({"value": value.to_string()});
        pod["metadata"]["annotations"] = json!({"padding": padding});
        say(format!("try {name} {value}"));
        let mut reply = with(server, "PUT", &uri, &pod).await;
        if reply.code == 404 {
            reply = with(server, "POST", PODS, &pod).await;
        }
        assert!([200, 201].contains(&reply.code), "{reply:?}");
        say(format!("done {name} {value} {}", reply.revision()));
    }
}

/// The `spec.priority` values that a pod may have after the process of the server is killed.
///
/// The first element is the last state known to be stored. Each other element is the result of an
/// unacknowledged write. `None` means that the pod is absent.
type Known = Vec<Option<u64>>;

#[test]
fn acknowledged_writes_survive_a_kill() {
    let seed = 1;
    let directory = scratch("killed");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut revision = 0;
    for round in 0..KILLS {
        let stop_after = rng.usize(..60);
        revision = kill_in_the_middle(&directory, round, stop_after, &mut known).max(revision);
        let server = open(&directory);
        assert!(
            server.revision() >= revision,
            "round {round} of seed {seed}"
        );
        let stored = values(&server);
        for (name, known) in &mut known {
            let value = stored.get(name).copied();
            assert!(
                known.contains(&value),
                "round {round} of seed {seed}: {name} is {value:?}, known: {known:?}"
            );
            *known = vec![value];
        }
        assert!(stored.keys().all(|name| known.contains_key(name)));
        revision = server.revision();
    }
    assert!(revision > 100, "the child has written: {revision}");
}

/// Starts a child process that writes pods, and kills it after `stop_after` acknowledged writes.
///
/// Updates `known`, and returns the highest acknowledged revision.
fn kill_in_the_middle(
    directory: &Path,
    round: u64,
    stop_after: usize,
    known: &mut BTreeMap<String, Known>,
) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(
        child.stdin.take().unwrap(),
        "{round} {}",
        directory.display()
    )
    .unwrap();
    let mut revision = 0;
    let mut acknowledged = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["try", name, value] => {
                let known = known.entry(name.to_owned()).or_insert_with(|| vec![None]);
                known.push(value.parse().ok());
            }
            ["done", name, value, at] => {
                known.insert(name.to_owned(), vec![value.parse().ok()]);
                revision = revision.max(at.parse().unwrap());
                acknowledged += 1;
                if acknowledged == stop_after {
                    child.kill().unwrap();
                }
            }
            _ => {}
        }
        if stop_after == 0 && !words.is_empty() {
            // The kill interrupts the first operation of the child, for example the opening of the store.
            drop(child.kill());
        }
    }
    child.wait().unwrap();
    revision
}

/// Asserts that no stored pod is a mixture of two writes, and returns each pod's label `value` by name.
fn values(server: &Server) -> BTreeMap<String, u64> {
    let whole = |pod: Value| {
        let value = pod["metadata"]["labels"]["value"].as_str().unwrap();
        let value: u64 = value.parse().unwrap();
        let padding = pod["metadata"]["annotations"]["padding"].as_str().unwrap();
        assert_eq!(padding.replace(&value.to_string(), ""), "", "whole");
        assert!(
            pod["metadata"]["uid"].is_string() && pod["metadata"]["creationTimestamp"].is_string()
        );
        (pod["metadata"]["name"].as_str().unwrap().to_owned(), value)
    };
    server.list("v1", "pods").into_iter().map(whole).collect()
}

#[tokio::test(start_paused = true)]
async fn a_restart_finishes_the_deletion_of_a_namespace() {
    let directory = scratch("namespace");
    let server = open(&directory);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "deletionTimestamp": "2027-01-15T08:00:00Z"}});
    let interrupted = json!({"status": {"phase": "Terminating"}});
    server.create(namespace).unwrap();
    server.create(pod("n/a")).unwrap();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}});
    server.create(map).unwrap();
    // This is the state after a kill during the deletion of the namespace.
    server.patch("v1", "namespaces", "n", interrupted).unwrap();
    drop(server);

    let server = open(&directory);
    assert!(server.get("v1", "namespaces", "n").is_none());
    assert!(server.list("v1", "pods").is_empty());
    assert!(server.list("v1", "configmaps").is_empty());
    let revision = server.revision();
    drop(server);
    assert_eq!(
        open(&directory).revision(),
        revision,
        "nothing remains to be done"
    );
}
