//! Tests group commit, which writes changes to the disk in batches.
//!
//! The tests use a simulated disk that can block, fail or lose power.

mod failures;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::FileBackend;
use serde_json::{Value, json};
use tower_service::Service;

use crate::server::Server;
use crate::storage::OpenDatabase;

/// State of a simulated disk, whose calls can be made to block or fail.
#[derive(Debug, Default)]
struct Medium {
    calls: AtomicU64,
    /// Index, counted from 0, of the first disk call that fails. All later calls fail too. `u64::MAX` if no
    /// call fails.
    fails_from: AtomicU64,
    syncs: AtomicU64,
    /// Whether the disk stops failing when the database file is opened again.
    heals_when_opened: AtomicBool,
    /// Lock that every call to the disk acquires. A test that holds it blocks all calls.
    gate: Mutex<()>,
    survivor: Mutex<Option<Survivor>>,
}

/// Simulated loss of power, after which the database file has all synced changes and some unsynced changes.
#[derive(Debug)]
struct Survivor {
    synced: Vec<u8>,
    unsynced: Vec<Unsynced>,
    /// Number of disk calls before the power fails; `None` if no failure is scheduled.
    calls_left: Option<u64>,
    /// Content of the database file after the loss of power.
    left: Option<Vec<u8>>,
    rng: fastrand::Rng,
}

/// A change to the database file that is not synced.
#[derive(Debug)]
enum Unsynced {
    Length(u64),
    Bytes(u64, Vec<u8>),
}

impl Survivor {
    fn new() -> Survivor {
        Survivor {
            synced: Vec::new(),
            unsynced: Vec::new(),
            calls_left: None,
            left: None,
            rng: fastrand::Rng::with_seed(1),
        }
    }

    fn call(&mut self, change: Option<Unsynced>) {
        if self.calls_left == Some(0) {
            self.lose_power();
        }
        self.calls_left = self.calls_left.and_then(|calls| calls.checked_sub(1));
        if let Some(change) = change {
            self.unsynced.push(change);
            return;
        }
        for change in std::mem::take(&mut self.unsynced) {
            apply(&mut self.synced, &change);
        }
    }

    /// Simulates the loss of power, and stores the remaining content of the file in the field `left`.
    ///
    /// The file keeps its length, all synced bytes, and a random selection of the sectors that were written
    /// after the last sync.
    fn lose_power(&mut self) {
        const SECTOR: usize = 512;
        let mut left = self.synced.clone();
        let most = self.rng.f64();
        for change in &self.unsynced {
            match change {
                Unsynced::Length(_) => apply(&mut left, change),
                Unsynced::Bytes(at, bytes) => {
                    for (nth, sector) in bytes.chunks(SECTOR).enumerate() {
                        if self.rng.f64() < most {
                            let at = at + (nth * SECTOR) as u64;
                            apply(&mut left, &Unsynced::Bytes(at, sector.to_vec()));
                        }
                    }
                }
            }
        }
        self.left = Some(left);
    }
}

fn apply(file: &mut Vec<u8>, change: &Unsynced) {
    let place = |at: u64| usize::try_from(at).unwrap();
    match change {
        Unsynced::Length(length) => file.resize(place(*length), 0),
        Unsynced::Bytes(at, bytes) => {
            let (at, end) = (place(*at), place(*at) + bytes.len());
            file.resize(file.len().max(end), 0);
            file[at..end].copy_from_slice(bytes);
        }
    }
}

impl Medium {
    fn sound() -> Arc<Medium> {
        let medium = Medium::default();
        medium.fails_from.store(u64::MAX, Ordering::Relaxed);
        Arc::new(medium)
    }

    /// Lets the next `calls` disk calls succeed, and makes all later disk calls fail.
    fn fail_after(&self, calls: u64) {
        let now = self.calls.load(Ordering::Relaxed);
        self.fails_from.store(now + calls, Ordering::Relaxed);
    }

    fn heal(&self) {
        self.fails_from.store(u64::MAX, Ordering::Relaxed);
    }

    /// Records a change of the database file, or a sync if `change` returns `None`.
    fn note(&self, change: impl FnOnce() -> Option<Unsynced>) {
        if let Some(survivor) = self.survivor.lock().as_mut() {
            survivor.call(change());
        }
    }

    fn call(&self) -> io::Result<()> {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.lock());
        if nth >= self.fails_from.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn open_database(self: &Arc<Medium>) -> OpenDatabase {
        let medium = Arc::clone(self);
        Box::new(move |file: &Path, create: bool| {
            if medium.heals_when_opened.load(Ordering::Relaxed) {
                medium.heal();
            }
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(true).create(create).open(file)?;
            let backend = Faulty {
                file: FileBackend::new(file)?,
                medium: Arc::clone(&medium),
            };
            Ok(redb::Database::builder().create_with_backend(backend)?)
        })
    }
}

/// A database file whose writes and syncs block or fail according to `medium`.
#[derive(Debug)]
struct Faulty {
    file: FileBackend,
    medium: Arc<Medium>,
}

impl StorageBackend for Faulty {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.medium.call()?;
        self.medium.note(|| Some(Unsynced::Length(len)));
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.medium.call()?;
        self.medium.syncs.fetch_add(1, Ordering::Relaxed);
        self.medium.note(|| None);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.medium.call()?;
        self.medium
            .note(|| Some(Unsynced::Bytes(offset, data.to_vec())));
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

/// Path of a temporary directory, which is removed on drop. The constructor does not create the directory.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("kube-informer-{process}-{name}"));
        drop(std::fs::remove_dir_all(&path));
        Scratch(path)
    }

    fn open(&self, medium: &Arc<Medium>) -> Server {
        let builder = Server::builder().rng_seed(1);
        builder.open_with(&self.0, medium.open_database()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn config_map(name: &str, value: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value.to_string()},
    })
}

async fn ask(server: Server, method: Method, name: &str, body: Value) -> (u16, Value) {
    let path = "/api/v1/namespaces/default/configmaps";
    let uri = match name {
        "" => path.to_owned(),
        name => format!("{path}/{name}"),
    };
    let body = Full::<Bytes>::from(body.to_string());
    let request = Request::builder().method(method).uri(uri).body(body);
    let mut server = server;
    let response = server.call(request.unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

fn create(server: &Server, name: &str) -> impl Future<Output = (u16, Value)> {
    ask(server.clone(), Method::POST, "", config_map(name, 0))
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the name and `data.value` of each config map that the server stores.
fn stored(server: &Server) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let objects = server.list("v1", "configmaps");
    let shown = |object: &Value| {
        (
            text(&object["metadata"]["name"]),
            text(&object["data"]["value"]),
        )
    };
    objects.iter().map(shown).collect()
}

#[tokio::test(start_paused = true)]
async fn a_write_is_invisible_before_it_is_on_the_disk() {
    let scratch = Scratch::new("unseen");
    let server = scratch.open(&Medium::sound());
    let before = server.revision();
    let held = server.shared().disk.get().unwrap().lock();
    let mut first = pin!(create(&server, "a"));
    assert!(
        poll(first.as_mut()).is_pending(),
        "there is no response yet"
    );
    assert_eq!(server.get("v1", "configmaps", "default/a"), None);
    assert_eq!(server.revision(), before);
    let mut second = pin!(create(&server, "a"));
    assert!(
        poll(second.as_mut()).is_pending(),
        "there is no rejection based on a pending write"
    );
    drop(held);
    assert_eq!(first.await.0, 201);
    assert_eq!(second.await.0, 409);
    assert_eq!(server.revision(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn writes_that_wait_for_the_disk_are_stored_together() {
    let scratch = Scratch::new("together");
    let medium = Medium::sound();
    let server = scratch.open(&medium);
    let alone = {
        let syncs = medium.syncs.load(Ordering::Relaxed);
        assert_eq!(create(&server, "alone").await.0, 201);
        medium.syncs.load(Ordering::Relaxed) - syncs
    };
    let held = server.shared().disk.get().unwrap().lock();
    let names: Vec<String> = (0..100).map(|nth| format!("n{nth:02}")).collect();
    let mut writes: Vec<_> = names
        .iter()
        .map(|name| Box::pin(create(&server, name)))
        .collect();
    for write in &mut writes {
        assert!(poll(write.as_mut()).is_pending());
    }
    let syncs = medium.syncs.load(Ordering::Relaxed);
    drop(held);
    for write in writes {
        assert_eq!(write.await.0, 201);
    }
    let together = medium.syncs.load(Ordering::Relaxed) - syncs;
    assert_eq!(
        together, alone,
        "a hundred writes need as many disk calls as one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_was_dropped_is_stored() {
    let scratch = Scratch::new("gone");
    let server = scratch.open(&Medium::sound());
    {
        let mut write = Box::pin(create(&server, "a"));
        let _ = poll(write.as_mut());
    }
    // The disk stores the next write after the write of the dropped caller.
    assert_eq!(create(&server, "b").await.0, 201);
    assert_eq!(stored(&server).len(), 2);
}

#[test]
fn a_direct_call_needs_no_runtime() {
    let scratch = Scratch::new("direct");
    let server = scratch.open(&Medium::sound());
    server.create(config_map("a", 1)).unwrap();
    server.delete("v1", "configmaps", "default/a").unwrap();
    server.create(config_map("a", 2)).unwrap();
    drop(server);
    let server = scratch.open(&Medium::sound());
    assert_eq!(stored(&server), [("a".to_owned(), "2".to_owned())]);
}

#[tokio::test]
async fn objects_created_by_one_call_are_synced_once() {
    let (medium, scratch) = (Medium::sound(), Scratch::new("many"));
    let server = scratch.open(&medium);
    let syncs = || medium.syncs.swap(0, Ordering::Relaxed);
    syncs();
    server.create(config_map("one", 1)).unwrap();
    let for_one = syncs();
    assert!(for_one > 0);
    let many = (0..100).map(|nth| config_map(&format!("many-{nth}"), 1));
    assert_eq!(server.create_all(many).await, Ok(100));
    assert_eq!(syncs(), for_one);
    drop(server);
    let again = scratch.open(&medium);
    assert_eq!(again.list("v1", "configmaps").len(), 101);
}
