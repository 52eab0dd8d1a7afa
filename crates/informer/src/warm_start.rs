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
//! - **Save.** A saved store is a file with a snapshot of the cache and the revision of each source. A source
//!   is one list and its watch, such as the pods of one namespace. The informer saves the store when the
//!   future passed to [`Controller::run`](crate::controller::Controller::run) completes, and when the program
//!   calls [`SharedInformer::save`](crate::shared_informer::SharedInformer::save). With
//!   [`SavedStore::every`], the informer also saves periodically. Neither the cache nor the handlers wait for
//!   the disk. A crash at any point leaves either the old store or the new store.
//! - **Load.** A store is loaded completely or not at all. The informer first requests one object from each
//!   source, to check that the server has reached the saved revision. It then applies all saved objects to
//!   the cache. Handlers receive these objects as the initial list. The watch resumes at the saved revision
//!   and delivers the changes since the save, including deletions.
//! - **Sync.** The informer is synced when the loaded objects are in the cache, and the resumed watch of
//!   every source has delivered an event or has been open for one second without an error. If the informer
//!   had to list a source again, the objects of this list must be in the cache. A synced cache is at least as
//!   recent as the save.
//! - **Expired revision.** If the saved revision has expired, the informer lists again, and handlers receive
//!   only the differences between the saved objects and the list.
//! - **Mismatch.** If the store does not match the informer, the informer starts cold: it lists all objects.
//!   [`Status::warm_start`](crate::status::Status::warm_start) and the log contain the
//!   [reason](crate::status::ColdReason). Examples are another server (identified by the uid of the namespace
//!   `kube-system`), a server that was restored to a revision before the saved revision, another kind, other
//!   namespaces or selectors, another version of the program, and a damaged file.
//! - **Server identity.** The informer saves the store only if it knows the identity of the server. If the
//!   request for the namespace `kube-system` fails, the informer repeats this request before each save, for
//!   at most 5 s. Until the request succeeds, the informer saves nothing, and
//!   [`Status::last_save_error`](crate::status::Status::last_save_error) contains the reason.
//!   [`SavedStore::server`] sets the identity explicitly.
//! - **Broken objects.** An object that failed to decode is saved with its decode error. It is loaded as an
//!   object that failed to decode.
//! - **Secrets.** Secrets and their metadata are neither saved nor loaded unless
//!   [`SavedStore::allow_secrets`] is set.
//!
//! A warm start reduces the server's load and the network traffic, but not the start time. For 100,000 pods,
//! loading a saved store takes 0.96 to 1.08 times as long as a list from a server in the same process
//! (measured by `cargo bench -p kube-informer --bench warm_start`).
//!
//! Objects are saved after pruning and the transform. The informer writes and reads an object with the
//! `Serialize` and the `Deserialize` of its type. A field that `Serialize` or `Deserialize` skips is lost. If
//! a new version of the program adds a field to the type, loaded objects lack the field until they change on
//! the server. To prevent this, change the version of the [`SavedStore`].
//!
//! This module loads only stores that it has saved. To fill the cache with other objects, use
//! [`InformerBuilder::known_objects`](crate::informer::InformerBuilder::known_objects) of the plain informer.

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

/// Configures a warm start: the location of the saved store, the times at which the informer saves the store,
/// and the properties that must match before the informer loads the store.
///
/// On Unix, new files have mode 0600 and new directories 0700. A file with the suffix `.lock` next to the
/// saved store prevents concurrent writes. A file with the suffix `.tmp` exists during a save.
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
    /// Directory for the stores of several informers, in which each store has its own file name.
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
    /// Creates a configuration that saves the store of one informer to the file `path`.
    ///
    /// `version` must change whenever the program changes the object type or the transform, because the
    /// library can't detect these changes. The informer does not load a store with another version.
    /// `env!("CARGO_PKG_VERSION")` is sufficient if each release of the program has its own version.
    pub fn in_file(path: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self::at(Location::File(path.into()), version.into())
    }

    /// Creates a configuration that saves the stores of any number of informers to the directory `path`, with
    /// one file for each informer.
    ///
    /// The file name is derived from the kind, the list options and the pruned fields. The library never
    /// deletes the file of an informer that no longer exists. If a program has informers for the same objects
    /// of several servers, each server needs its own directory, because the file name does not identify the
    /// server.
    ///
    /// See [`SavedStore::in_file`] for `version`.
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

    /// Enables periodic saves while the informer runs. The informer waits for `pause` before each save. Zero
    /// disables periodic saves.
    ///
    /// Without periodic saves, the informer saves its store only at a regular shutdown, or when the program
    /// calls [`SharedInformer::save`](crate::shared_informer::SharedInformer::save).
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause).filter(|pause| !pause.is_zero());
        self
    }

    /// Sets `name` as the identity of the server. The informer then does not request the uid of the namespace
    /// `kube-system`.
    ///
    /// Use this method if the program has no permission to `get` this namespace, or if the objects do not
    /// come from a Kubernetes server. Each server must have a different name.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Allows the informer to save and load Secrets. Secrets are saved unencrypted.
    pub fn allow_secrets(mut self) -> Self {
        self.secrets = true;
        self
    }

    /// Sets the clock that determines the time of each save and the age of a saved store. The default is the
    /// system clock.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }
}
