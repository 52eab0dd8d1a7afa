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
//! - **Save.** A saved store contains a snapshot of the cache and the revision of each source. The informer
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
//! - **Server identity.** The store is saved only if the identity of the server is known. If the request for
//!   the namespace `kube-system` fails or is forbidden, the informer retries the request before each save,
//!   for at most 5 s. Until the request succeeds, nothing is saved, and
//!   [`Status::last_save_error`](crate::status::Status::last_save_error) contains the reason.
//!   [`SavedStore::server`] sets the identity explicitly.
//! - **Broken objects**, which fail to decode, are saved and loaded as broken, because the same program
//!   version would again fail to decode them.
//! - **Secrets**, including their metadata, are neither saved nor loaded unless [`SavedStore::allow_secrets`]
//!   is set.
//!
//! A warm start reduces server load and network traffic, but not the start time: loading a saved store takes
//! as long as a list from a server in the same process (0.96 to 1.08 of the time of such a list for 100,000
//! pods). A save takes 0.3 to 0.5 of that time. (Measured by `cargo bench -p kube-informer --bench
//! warm_start`.)
//!
//! Objects are saved in their cached form, after pruning and the transform. The `Serialize` of the object
//! type writes them (for a [`Pruned`](crate::pruning::Pruned) type, the `Serialize` of the whole type) and
//! its `Deserialize` reads them; a field that these skip is lost. If a new version of the program adds a
//! field to the type, loaded objects lack the field until they change; change the version of the
//! [`SavedStore`] to prevent this.
//!
//! This module only loads stores that it has saved. To fill the cache with other objects, use
//! [`InformerBuilder::known_objects`](crate::informer::InformerBuilder::known_objects) of the plain informer:
//! that method adds the objects without a revision and without events, and the informer still lists.

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

/// Configures a warm start: where the store is saved, how often, and what must match for it to be loaded.
///
/// On platforms with file modes, files are created with mode 0600 and directories with 0700. A file `….lock`
/// next to the saved store prevents concurrent writes. A file `….tmp` exists during a save.
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
    /// A directory; the file name is derived from the kind, the list options and the pruned fields.
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
    /// Creates a configuration that saves the store of one informer to this file.
    ///
    /// `version` must change whenever the program changes the object type or the transform, because these
    /// determine the cached form of an object and can't be compared. A store that was saved with a different
    /// version is not loaded. The pruned fields are compared separately and need no new version.
    /// `env!("CARGO_PKG_VERSION")`, or any other identifier of the build, is always a correct version.
    pub fn in_file(path: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self::at(Location::File(path.into()), version.into())
    }

    /// Creates a configuration that saves the stores of any number of informers to this directory, one file
    /// each.
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

    /// Enables periodic saves while the informer runs, with this pause before each save.
    ///
    /// Without periodic saves, only a regular shutdown or an explicit save updates the saved store; a program
    /// that is killed leaves an old one. Zero disables periodic saves.
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause).filter(|pause| !pause.is_zero());
        self
    }

    /// Sets the identity of the server, instead of requesting the uid of its namespace `kube-system`.
    ///
    /// Use this if the program has no permission to `get` the namespace, or if a source is not a Kubernetes
    /// server. No other server may have the same name.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Allows Secrets to be saved and loaded. They are saved unencrypted.
    pub fn allow_secrets(mut self) -> Self {
        self.secrets = true;
        self
    }

    /// Sets the wall clock for the time of a save and the age of a saved store. The default is the system
    /// clock.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }
}
