//! [`Snapshotter`] saves the cache of one informer to a file, and loads the file when an informer starts.
//!
//! Guarantees: saves run one at a time. Disk access runs on tokio's threads for blocking work. If the caller
//! drops the future of a save or a load, the work stops before the next object.
//!
//! Module `format` defines the file format, and module `file` replaces the file atomically.

use std::{
    fmt::{self, Debug as _},
    io::{BufReader, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
    time::{Duration, UNIX_EPOCH},
};

use derive_where::derive_where;
use futures_util::future;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, task::spawn_blocking, time::timeout};

use super::{
    Location, SavedStore,
    file::{self, ReplaceError},
    format::{
        self, Checksum, Header, Limits, Reader, SavedSource, WriteError, Writer, damaged, said,
    },
};
use crate::{
    controller::NoSnapshot,
    decode::Decoder,
    indexer::Snapshot,
    object::{Object, ObjectName, ResourceVersion, SourceId},
    pruning::{Pruning, Storable},
    status::ColdReason,
    transport::{self, Class, ListerWatcher},
};

/// Timeout of the request for the server identity before a save.
///
/// The timeout is short, because a save at shutdown must complete before Kubernetes kills the program's pod.
/// By default, Kubernetes kills a pod 30 s after the start of its termination.
const ASKED_AGAIN: Duration = Duration::from_secs(5);

/// Result of a successful save: the number of saved objects and the size of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Number of saved objects. The cache also contains objects that the informer failed to decode. They are
    /// saved and counted too.
    pub objects: usize,
    /// Size of the file, in bytes.
    pub bytes: u64,
}

/// The reason why the informer did not save its store. The previously saved store remains unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The informer was built without [`warm_start`](crate::shared_informer::Builder::warm_start).
    #[error("the informer has no saved store; set one with Builder::warm_start")]
    NoSavedStore,
    /// The objects are Secrets, and [`SavedStore::allow_secrets`] is not set.
    #[error("Secrets are not saved; to allow it, call SavedStore::allow_secrets")]
    SecretsRefused,
    /// The informer has not synced, so its cache is incomplete.
    #[error("the informer has not synced; save after wait_for_sync")]
    NotSynced,
    /// A [`ListerWatcher`](crate::transport::ListerWatcher) of the informer returns `None` from `server` or
    /// from `collection`.
    #[error("the transport does not implement ListerWatcher::server or ListerWatcher::collection")]
    Unidentified,
    /// The identity of the server is unknown. The request for the identity failed when the informer started,
    /// and failed again before this save.
    #[error(
        "the identity of the server is unknown; grant `get` on namespace kube-system, or set SavedStore::server"
    )]
    ServerUnknown(#[source] transport::Error),
    /// Changes wait in a [`DeltaFifo`](crate::queue::DeltaFifo), because the buffer of a handler is full.
    ///
    /// A `DeltaFifo` does not preserve the server's order of changes. The cache may therefore contain a newer
    /// change without an older one, and match no revision of the server.
    #[error("changes wait in the queue for a handler whose buffer is full; save again later")]
    Unsettled,
    /// Another process, or another informer, is writing the same file. The value is the path of the file.
    #[error("another process or informer is writing {}", .0.display())]
    Busy(PathBuf),
    /// An object exceeds 16 MiB, or the store exceeds 4 GiB or 5,000,000 objects.
    #[error("the store exceeds a limit: 16 MiB per object, 4 GiB, or 5,000,000 objects")]
    TooLarge,
    /// The `Serialize` implementation returned an error for the object with this name.
    #[error("{0} can't be serialized as JSON")]
    Encode(ObjectName),
    /// The `Serialize` implementation panicked for an object.
    #[error("serializing an object as JSON panicked")]
    Panicked,
    /// The informer has ended.
    #[error("the informer has stopped")]
    Stopped,
    /// The file system returned an error.
    #[error("{} can't be written", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error that the file system returned.
        source: std::io::Error,
    },
}

impl From<NoSnapshot> for SaveError {
    fn from(reason: NoSnapshot) -> Self {
        match reason {
            NoSnapshot::NotSynced => Self::NotSynced,
            NoSnapshot::Unsettled => Self::Unsettled,
            NoSnapshot::Stopped => Self::Stopped,
        }
    }
}

/// A `ListerWatcher` of the informer does not report the identity of its server.
#[derive(Debug)]
pub(crate) struct Unidentified;

/// Content of a loaded store, and the time since the save.
#[derive(Debug)]
pub(crate) struct Loaded<K> {
    /// Objects and revision of each source, in the order of the informer's sources.
    pub(crate) lists: Vec<(Vec<Object<K>>, ResourceVersion)>,
    pub(crate) age: Duration,
}

type Save<K> = fn(&Snapshotter<K>, &Snapshot<K>, &Weak<()>) -> Result<Saved, SaveError>;
type Load<K> = fn(&Snapshotter<K>, &Decoder<K>, &Weak<()>) -> Result<Loaded<K>, ColdReason>;

/// The options that the program set with [`SavedStore`], and the functions that save and load a cache of
/// objects of type `K`.
#[derive_where(Clone)]
pub(crate) struct Storing<K> {
    config: SavedStore,
    save: Save<K>,
    load: Load<K>,
}

impl<K: Resource + Storable + DeserializeOwned> Storing<K> {
    pub(crate) fn new(config: SavedStore) -> Self {
        Self {
            config,
            save: save::<K>,
            load: load::<K>,
        }
    }
}

/// Displays the location and the version of the saved store.
///
/// A factory compares this text. Callers share an informer only if their texts are equal.
impl<K> fmt::Display for Storing<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

/// Saves the cache of one informer to a file, and loads the file if it was saved with the same server, kind,
/// selectors and pruned fields.
pub(crate) struct Snapshotter<K> {
    storing: Storing<K>,
    kind: String,
    /// The fields that pruning removes from objects, as text.
    pruned: String,
    is_secret: bool,
    path: PathBuf,
    sources: Vec<Arc<dyn ListerWatcher>>,
    /// For each `ListerWatcher`, the result of [`ListerWatcher::collection`], such as `/api/v1/pods`. `None`
    /// if at least one of the results is `None`.
    collections: Option<Vec<String>>,
    /// Identity of the server, once known.
    server: OnceLock<String>,
    turn: Arc<Mutex<()>>,
}

impl<K: Resource> Snapshotter<K> {
    pub(crate) fn new(
        storing: Storing<K>,
        dyntype: &K::DynamicType,
        sources: &[Arc<dyn ListerWatcher>],
        pruning: &Pruning,
    ) -> Self {
        let pruned = pruning.to_string();
        let metadata = if K::metadata_api() {
            "metadata of "
        } else {
            ""
        };
        let (api_version, kind) = (K::api_version(dyntype), K::kind(dyntype));
        let is_secret = api_version == "v1" && kind == "Secret";
        let kind = format!("{metadata}{api_version} {kind}");
        let collections: Option<Vec<_>> =
            sources.iter().map(|source| source.collection()).collect();
        let path = match &storing.config.location {
            Location::File(path) => path.clone(),
            Location::Directory(folder) => {
                let kept = [&*kind, &*pruned]
                    .into_iter()
                    .filter(|text| !text.is_empty());
                let listed = collections.iter().flatten().map(String::as_str);
                folder.join(file_name(&K::plural(dyntype), listed.chain(kept)))
            }
        };
        let server = storing.config.server.clone();
        Self {
            storing,
            kind,
            pruned,
            is_secret,
            path,
            sources: sources.to_vec(),
            collections,
            server: server.map(OnceLock::from).unwrap_or_default(),
            turn: Arc::default(),
        }
    }
}

/// Returns a file name of `plural` and a checksum of the texts in `what`, such as
/// `pods-0123456789abcdef.jsonl`.
fn file_name<'a>(plural: &str, what: impl Iterator<Item = &'a str>) -> String {
    let mut checksum = Checksum::new();
    for text in what {
        checksum.add(text.as_bytes());
        checksum.add(&[0]);
    }
    let plural: String = plural.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{plural}-{}.jsonl", checksum.text())
}

impl<K> Snapshotter<K> {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn every(&self) -> Option<Duration> {
        self.storing.config.every
    }

    /// Returns the identity of the server, or `None` while the identity is unknown.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.get().map(String::as_str)
    }

    /// Records the identity of the server, unless an identity is already recorded.
    ///
    /// `answers` are the results of [`ListerWatcher::server`] of all sources. The recorded identity contains
    /// each different answer once.
    ///
    /// # Errors
    /// Returns an error if one of the answers is `None`.
    pub(crate) fn identify(&self, answers: Vec<Option<String>>) -> Result<(), Unidentified> {
        let mut servers: Vec<String> = Vec::new();
        for answer in answers {
            let server = answer.ok_or(Unidentified)?;
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        self.server.get_or_init(|| servers.join(" "));
        Ok(())
    }

    /// Requests the identity of the server, unless it is known.
    ///
    /// # Errors
    /// Returns an error if [`check`](Self::check) fails, a request fails, a `ListerWatcher` returns no
    /// identity, or the responses do not arrive within [`ASKED_AGAIN`].
    async fn ask_again(&self) -> Result<(), SaveError> {
        self.check().map_err(|reason| match reason {
            ColdReason::SecretsRefused => SaveError::SecretsRefused,
            _ => SaveError::Unidentified,
        })?;
        if self.server().is_some() {
            return Ok(());
        }
        let answers = future::try_join_all(self.sources.iter().map(|source| source.server()));
        let late = |_| transport::Error::new(Class::Timeout, "the server does not respond");
        let answers = timeout(ASKED_AGAIN, answers).await.map_err(late).flatten();
        let identified = self.identify(answers.map_err(SaveError::ServerUnknown)?);
        identified.map_err(|Unidentified| SaveError::Unidentified)
    }

    /// Checks that the informer may save and load its store.
    ///
    /// # Errors
    /// Returns the reason for a cold start, such as Secrets without [`SavedStore::allow_secrets`].
    pub(crate) fn check(&self) -> Result<(), ColdReason> {
        if self.is_secret && !self.storing.config.secrets {
            return Err(ColdReason::SecretsRefused);
        }
        let known = self.collections.as_ref().map(drop);
        known.ok_or(ColdReason::Unidentified)
    }

    fn header(&self, snapshot: &Snapshot<K>) -> Result<Header, SaveError> {
        let (Some(server), Some(collections)) = (self.server(), &self.collections) else {
            return Err(SaveError::Unidentified);
        };
        let config = &self.storing.config;
        let saved = (config.clock)().duration_since(UNIX_EPOCH);
        let sources = (0..)
            .zip(collections)
            .map(|(number, collection)| SavedSource {
                collection: collection.clone(),
                revision: snapshot.source_revision(SourceId::new(number)).to_string(),
            });
        Ok(Header {
            format: format::FORMAT,
            saved: saved.unwrap_or_default().as_secs(),
            version: config.version.clone(),
            kind: self.kind.clone(),
            pruned: self.pruned.clone(),
            server: server.to_owned(),
            sources: sources.collect(),
        })
    }

    /// Checks that the header of a saved store matches this informer.
    ///
    /// # Errors
    /// Returns the reason for a cold start if the header does not match.
    fn fits(&self, header: &Header) -> Result<(), ColdReason> {
        if header.kind != self.kind {
            let saved = said(&header.kind);
            return Err(ColdReason::OtherKind { saved });
        }
        if self.server() != Some(&*header.server) {
            return Err(ColdReason::OtherServer);
        }
        let wanted = self.collections.as_deref().unwrap_or_default();
        let saved: Vec<_> = header
            .sources
            .iter()
            .map(|source| &*source.collection)
            .collect();
        if saved != wanted {
            return Err(ColdReason::OtherScope {
                saved: said(&saved.join(", ")),
                wanted: said(&wanted.join(", ")),
            });
        }
        if header.version != self.storing.config.version {
            let saved = said(&header.version);
            return Err(ColdReason::OtherVersion { saved });
        }
        if header.pruned != self.pruned {
            return Err(ColdReason::OtherPruning);
        }
        let has_revision = |SavedSource { revision, .. }: &SavedSource| {
            ResourceVersion::is_fit(revision) && !matches!(&**revision, "" | "0")
        };
        if !header.sources.iter().all(has_revision) {
            return Err(damaged("a source has no revision"));
        }
        Ok(())
    }
}

impl<K: Send + Sync + 'static> Snapshotter<K> {
    /// Saves a snapshot of the cache to the file.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the save. The old file remains, unless the new file was already complete.
    pub(crate) async fn save(self: &Arc<Self>, snapshot: Snapshot<K>) -> Result<Saved, SaveError> {
        self.ask_again().await?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (snapshotter, waiting) = (Arc::clone(self), Arc::new(()));
        let wanted = Arc::downgrade(&waiting);
        let saving = spawn_blocking(move || {
            // The next save waits until a cancelled save has released the file.
            let _turn = turn;
            (snapshotter.storing.save)(&snapshotter, &snapshot, &wanted)
        });
        saving.await.unwrap_or_else(|error| {
            if error.is_panic() {
                return Err(SaveError::Panicked);
            }
            Err(SaveError::Stopped)
        })
    }

    /// Loads the saved store if it matches this informer.
    ///
    /// # Errors
    /// Returns the reason for a cold start if the store can't be read or does not match.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the load, and has no other effect.
    pub(crate) async fn load(
        self: &Arc<Self>,
        decoder: Decoder<K>,
    ) -> Result<Loaded<K>, ColdReason> {
        let (snapshotter, waiting) = (Arc::clone(self), Arc::new(()));
        let wanted = Arc::downgrade(&waiting);
        let loading =
            spawn_blocking(move || (snapshotter.storing.load)(&snapshotter, &decoder, &wanted));
        let panicked = |_| Err(damaged("reading it panicked"));
        loading.await.unwrap_or_else(panicked)
    }
}

fn is_wanted(waiting: &Weak<()>) -> bool {
    waiting.strong_count() > 0
}

fn save<K: Resource + Storable>(
    snapshotter: &Snapshotter<K>,
    snapshot: &Snapshot<K>,
    waiting: &Weak<()>,
) -> Result<Saved, SaveError> {
    let header = snapshotter.header(snapshot)?;
    let io = |source| SaveError::Io {
        path: snapshotter.path.clone(),
        source,
    };
    let failed = |error, name: Option<&ObjectName>| match (error, name) {
        (WriteError::Io(error), _) => io(error),
        (WriteError::Encode, Some(name)) => SaveError::Encode(name.clone()),
        _ => SaveError::TooLarge,
    };
    let saved = file::replace(&snapshotter.path, |file| {
        let mut writer =
            Writer::new(file, &header, Limits::DEFAULT).map_err(|error| failed(error, None))?;
        for (source, object) in snapshot.entries() {
            if !is_wanted(waiting) {
                return Err(SaveError::Stopped);
            }
            let written = writer.object(source, object);
            written.map_err(|error| failed(error, Some(object.object_name())))?;
        }
        let (objects, bytes, _) = writer.finish().map_err(|error| failed(error, None))?;
        Ok(Saved { objects, bytes })
    });
    saved.map_err(|error| match error {
        ReplaceError::Busy => SaveError::Busy(snapshotter.path.clone()),
        ReplaceError::Io(error) => io(error),
        ReplaceError::Write(error) => error,
    })
}

fn load<K: Resource + DeserializeOwned>(
    snapshotter: &Snapshotter<K>,
    decoder: &Decoder<K>,
    waiting: &Weak<()>,
) -> Result<Loaded<K>, ColdReason> {
    let unreadable = |error: std::io::Error| ColdReason::Unreadable(error.to_string());
    let (file, bytes) = file::open(&snapshotter.path)
        .map_err(unreadable)?
        .ok_or(ColdReason::NoFile)?;
    let limits = Limits::DEFAULT;
    if bytes > limits.file_bytes {
        return Err(damaged("it is larger than the limit of a saved store"));
    }
    // A file that another program writes may grow while it is read.
    let file = BufReader::with_capacity(64 << 10, file.take(limits.file_bytes));
    let (header, reader) = Reader::new(file, limits)?;
    snapshotter.fits(&header)?;
    let lists = reader.objects(header.sources.len(), decoder, &|| is_wanted(waiting))?;
    let revisions = header.sources.iter();
    let revisions = revisions.map(|source| ResourceVersion::from(&*source.revision));
    let saved = UNIX_EPOCH.checked_add(Duration::from_secs(header.saved));
    let now = (snapshotter.storing.config.clock)();
    let age = saved.and_then(|saved| now.duration_since(saved).ok());
    Ok(Loaded {
        lists: lists.into_iter().zip(revisions).collect(),
        age: age.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
