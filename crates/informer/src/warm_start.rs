//! Warm start: fills the cache from a saved store and resumes the watch, without a new list.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_informer::{client::ListWatch, shared_informer::SharedInformer, warm_start::SavedStore};
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let saved = SavedStore::in_directory("/var/cache/my-controller", env!("CARGO_PKG_VERSION"))
//!     .every(Duration::from_secs(600));
//! let (pods, controller) = SharedInformer::<Pod>::builder(ListWatch::<Pod>::new(client))
//!     .warm_start(saved)
//!     .build();
//! let running = tokio::spawn(controller.run(async { tokio::signal::ctrl_c().await.unwrap() }));
//! pods.wait_for_sync().await?;
//! println!("{:?}", pods.status().get().warm_start);
//! # Ok(()) }
//! ```
//!
//! # Guarantees
//!
//! - **Save.** A save contains the cache at one moment and the revision of each source. The informer
//!   saves when the future passed to [`Controller::run`](crate::controller::Controller::run) completes,
//!   on [`SharedInformer::save`](crate::shared_informer::SharedInformer::save), and periodically with
//!   [`SavedStore::every`]. Neither the cache nor the handlers wait for the disk. A crash at any point
//!   leaves either the old store or the new one.
//! - **Load.** A store is loaded completely or not at all. The informer first requests one object per
//!   source, to check that the server has reached the saved revision. It then applies all saved objects to
//!   the cache, with any queue, and handlers receive them as the initial list. The watch resumes at the
//!   saved revision and delivers the changes since the save as updates and deletions.
//! - **Sync.** The informer is synced when the loaded objects are in the cache and, for every source, the
//!   resumed watch has delivered an event or has been open for one second without an error. (A server
//!   reports an expired revision inside the watch, at once.) The cache is then at least as recent as
//!   the save. If a source had to be listed instead, that list is in the cache first.
//! - **Expired revision.** The informer lists again, and handlers receive only the differences.
//! - **Mismatch.** If the store does not match the informer, the informer starts cold. The
//!   [reason](crate::status::ColdReason) is in [`Status::warm_start`](crate::status::Status::warm_start)
//!   and in the log: a different server (identified by the uid of the namespace `kube-system`), a server
//!   that was restored to a revision before the saved one, a different kind, full objects instead of
//!   metadata or the reverse, different namespaces, selectors or pruned fields, a different program
//!   version or file format, or a damaged file.
//! - **Server identity.** The store is saved only if the identity of the server is known. If the request
//!   for the namespace fails or is forbidden, the informer retries it before each save, for at most 5 s.
//!   Until it succeeds, nothing is saved, and
//!   [`Status::last_save_error`](crate::status::Status::last_save_error) contains the reason.
//!   [`SavedStore::server`] sets the identity explicitly.
//! - **Broken objects** are saved and loaded as broken, because the same program version can't decode
//!   them either.
//! - **Secrets**, including their metadata, are rejected unless [`SavedStore::allow_secrets`] is set.
//!
//! A warm start reduces server load and network traffic, not the time to load: loading takes as long as a
//! list from a server in the same process (0.96 to 1.08 of it for 100,000 pods; a save takes 0.3 to 0.5;
//! measured by `cargo bench -p kube-informer --bench warm_start`).
//!
//! Objects are saved after pruning and the transform. The type's `Serialize` writes them (for a
//! [`Pruned`](crate::pruning::Pruned) type, that of the whole type) and its `Deserialize` reads them; a
//! field that these skip is lost. A field that is new in the type is missing until the object changes;
//! change the version of the [`SavedStore`] to prevent this.
//!
//! This module does not accept objects from other origins. Use
//! [`InformerBuilder::known_objects`](crate::informer::InformerBuilder::known_objects) of the plain
//! informer for these: it fills the cache without a revision and without events, and still lists.

mod file;
mod format;
#[cfg(feature = "__fuzzing")]
pub(crate) mod fuzzing;
mod restore;
mod snapshotter;

pub use self::snapshotter::{SaveError, Saved};
pub(crate) use self::{
    restore::Restore,
    snapshotter::{Snapshotter, Storing},
};

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The location of a saved store, and the properties that must match to load it.
///
/// On platforms with file modes, files are created with mode 0600 and directories with 0700. A file
/// `….lock` next to the store excludes other writers. A file `….tmp` exists during a save.
#[doc(alias = "initialState")]
#[must_use]
#[derive(Clone)]
pub struct SavedStore {
    location: Location,
    version: String,
    every: Option<Duration>,
    server: Option<String>,
    secrets: bool,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

#[derive(Clone, Debug)]
enum Location {
    File(PathBuf),
    /// The file name is derived from the kind and from the list options.
    Directory(PathBuf),
}

impl fmt::Debug for SavedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedStore")
            .field("location", &self.location)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl SavedStore {
    /// Saves the store of one informer to this file.
    ///
    /// The version represents the parts of the program that determine the cached form of an object and that
    /// can't be compared: the type and the transform. A store that was saved with a different version is not
    /// loaded. The pruned fields are compared separately and need no new version.
    /// `env!("CARGO_PKG_VERSION")`, or any other identifier of the build, is always a correct version.
    pub fn in_file(path: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self::at(Location::File(path.into()), version.into())
    }

    /// Saves the stores of any number of informers to this directory, one file each.
    ///
    /// The file name is derived from the kind, the list options and the pruned fields. Files of informers
    /// that no longer exist are not deleted. Informers of the same objects on several servers require one
    /// directory per server.
    ///
    /// See [`SavedStore::in_file`] for the version.
    pub fn in_directory(path: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self::at(Location::Directory(path.into()), version.into())
    }

    fn at(location: Location, version: String) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the default of the clock that a builder can be given"
        )]
        let clock = Arc::new(SystemTime::now);
        Self {
            location,
            version,
            every: None,
            server: None,
            secrets: false,
            clock,
        }
    }

    /// Also saves while the informer runs, with this pause before each save.
    ///
    /// Without periodic saves, a program that is killed leaves the store of its last regular shutdown. Zero
    /// disables periodic saves.
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause).filter(|pause| !pause.is_zero());
        self
    }

    /// Sets the identity of the server, instead of requesting the uid of its namespace `kube-system`.
    ///
    /// Use this if the program has no permission to `get` the namespace, or if a source is not a Kubernetes
    /// server. The name must be unique to this server.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Allows Secrets to be saved and loaded. They are saved unencrypted.
    pub fn allow_secrets(mut self) -> Self {
        self.secrets = true;
        self
    }

    /// Sets the wall clock that determines the age of a saved store. The default is the system clock.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }
}
