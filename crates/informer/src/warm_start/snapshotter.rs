//! [`Snapshotter`]: saves and loads the store of one informer.
//!
//! Guarantees: one save at a time; the disk is waited for on the runtime's pool for blocking work, which
//! lets go within one object when nobody waits any more.

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
    decode::Decoder,
    indexer::Snapshot,
    object::{Object, ObjectName, ResourceVersion, SourceId},
    pruning::{Pruning, Storable},
    status::ColdReason,
    transport::{self, Class, ListerWatcher},
};

/// Before a save the server is asked for this long who it is, if that is not known yet. A program that
/// ends has 30 s in a pod unless it says otherwise (`terminationGracePeriodSeconds`).
const ASKED_AGAIN: Duration = Duration::from_secs(5);

/// A moment of a store, or why there is none to save.
pub(crate) type Moment<K> = Result<Snapshot<K>, SaveError>;

/// What was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// How many objects, broken ones included.
    pub objects: usize,
    /// The size of the file.
    pub bytes: u64,
}

/// Why a store was not saved. What was saved before is untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The informer was built without
    /// [`warm_start`](crate::shared_informer::Builder::warm_start).
    #[error("the informer has no saved store: Builder::warm_start gives it one")]
    NoSavedStore,
    /// Secrets are not written to disks unless that is asked for.
    #[error("Secrets are not saved unless SavedStore::allow_secrets says so")]
    SecretsRefused,
    /// The informer has not synced, so there is nothing that is worth it.
    #[error("the informer has not synced")]
    NotSynced,
    /// Nobody can tell which server or which of its objects it is: the transport does not say.
    #[error("the transport does not say which server and which objects it stands for")]
    Unidentified,
    /// The server did not say who it is, neither at the start nor when it was asked again for this save.
    #[error(
        "the server does not say who it is (may the program `get` the namespace kube-system? SavedStore::server names it)"
    )]
    ServerUnknown(#[source] transport::Error),
    /// The queue is one that hands out objects in another order than the server's, and what waits in it
    /// waits for a handler whose buffer is full.
    #[error("changes are waiting in the queue, behind a handler whose buffer is full")]
    Unsettled,
    /// Another process, or another informer, is writing the same file.
    #[error("somebody else is writing {}", .0.display())]
    Busy(PathBuf),
    /// An object or the whole is larger than what would be loaded.
    #[error("the store is too large: 16 MiB an object, 4 GiB and 5,000,000 objects are the limits")]
    TooLarge,
    /// An object's `Serialize` failed.
    #[error("{0} can't be written as JSON")]
    Encode(ObjectName),
    /// An object's `Serialize` panicked.
    #[error("writing an object as JSON panicked")]
    Panicked,
    /// The informer has ended.
    #[error("the informer has stopped")]
    Stopped,
    /// The file system refuses.
    #[error("{} can't be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// A source can't tell which server it is of.
#[derive(Debug)]
pub(crate) struct Unidentified;

/// A saved store, loaded.
#[derive(Debug)]
pub(crate) struct Loaded<K> {
    /// Per source, in their order.
    pub(crate) lists: Vec<(Vec<Object<K>>, ResourceVersion)>,
    pub(crate) age: Duration,
}

type Save<K> = fn(&Snapshotter<K>, &Snapshot<K>, &Weak<()>) -> Result<Saved, SaveError>;
type Load<K> = fn(&Snapshotter<K>, &Decoder<K>, &Weak<()>) -> Result<Loaded<K>, ColdReason>;

/// A saved store for objects of this type, which therefore can be written and read.
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

/// Location and version: what two informers that are one must agree on.
impl<K> fmt::Display for Storing<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

/// What one informer saves and loads, and where.
pub(crate) struct Snapshotter<K> {
    storing: Storing<K>,
    kind: String,
    /// What is cut out of its objects, as text.
    pruned: String,
    is_secret: bool,
    path: PathBuf,
    sources: Vec<Arc<dyn ListerWatcher>>,
    /// What each source lists; `None` if one can't tell.
    collections: Option<Vec<String>>,
    /// Which server it is, as soon as that is known.
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

/// `pods-0123456789abcdef.jsonl`: the same for the same collections, kind and pruning, another one for
/// others.
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

    /// Which server it is, if that is known.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.get().map(String::as_str)
    }

    /// Notes which servers the sources are of, of which nobody has said anything else; unless one of them
    /// can't tell.
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

    /// Asks again which server it is, if that is not known: the right to see it may have been given
    /// since, and a server that failed may have recovered.
    async fn ask_again(&self) -> Result<(), SaveError> {
        self.check().map_err(|reason| match reason {
            ColdReason::SecretsRefused => SaveError::SecretsRefused,
            _ => SaveError::Unidentified,
        })?;
        if self.server().is_some() {
            return Ok(());
        }
        let answers = future::try_join_all(self.sources.iter().map(|source| source.server()));
        let late = |_| transport::Error::new(Class::Timeout, "the server does not answer");
        let answers = timeout(ASKED_AGAIN, answers).await.map_err(late).flatten();
        let identified = self.identify(answers.map_err(SaveError::ServerUnknown)?);
        identified.map_err(|Unidentified| SaveError::Unidentified)
    }

    /// Whether there can be a saved store at all.
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

    /// Whether a saved store is of this informer.
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
    /// Saves one moment of the store.
    ///
    /// # Cancel safety
    /// Dropping the future gives it up: what was saved before stays, unless the new one was complete.
    pub(crate) async fn save(self: &Arc<Self>, snapshot: Snapshot<K>) -> Result<Saved, SaveError> {
        self.ask_again().await?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (snapshotter, waiting) = (Arc::clone(self), Arc::new(()));
        let wanted = Arc::downgrade(&waiting);
        let saving = spawn_blocking(move || {
            // Whoever comes next waits for a save that was given up to let go of the file.
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

    /// Loads what was saved, if it is of this informer, in the form in which the decoder's cache keeps objects.
    ///
    /// # Cancel safety
    /// Dropping the future gives it up.
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
        return Err(damaged("it is larger than any saved store"));
    }
    // It may grow while it is read, if it is not of our making.
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
