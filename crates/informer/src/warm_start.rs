//! Warm start: the cache begins with what was saved, and the watch goes on from there instead of
//! listing everything again.
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
//! # What it promises
//!
//! - **Saved** is one moment of the cache with the revision of each source: when the informer is
//!   stopped by [`Controller::run`](crate::controller::Controller::run)'s future, by
//!   [`SharedInformer::save`](crate::shared_informer::SharedInformer::save), and every so often if
//!   [`SavedStore::every`] says so. Nothing waits for the disk, and a crash at any point leaves the old
//!   store or the new one.
//! - **Loaded** is all of it or nothing. One object of each source is asked for, to see that the server
//!   has come as far. Then the cache has all of it, whichever queue it goes through, and handlers hear it
//!   as the initial list. Then the watch begins at the saved revision: what happened meanwhile comes as
//!   updates and deletions.
//! - **Synced** is said when what was loaded is in the cache and the watch from there has told something
//!   or stood for a second without an error (an expired revision is told inside the watch, at once), for
//!   every source. What is served is then no older than what was saved, and what is missing is on its
//!   way. If everything had to be listed after all, that list is in the cache first.
//! - A revision that has **expired** leads to a list, of which handlers hear the difference.
//! - Whatever does not fit is a **cold start** with its [reason](crate::status::ColdReason), in
//!   [`Status::warm_start`](crate::status::Status::warm_start) and in the log: another server (told by
//!   the uid of the namespace `kube-system`), one that was put back behind the saved revision, another
//!   kind, metadata alone or not, other namespaces or selectors, other pruned fields, another version of
//!   the program, another format, or damage.
//! - **Whose** it is must be known. A server that does not say who it is, because the program may not
//!   `get` that namespace or because it fails, is asked once more before each save, for 5 s at most. As
//!   long as it does not say, nothing is saved, and
//!   [`Status::last_save_error`](crate::status::Status::last_save_error) has the reason;
//!   [`SavedStore::server`] names it instead.
//! - **Broken** objects are saved and loaded as broken: the same version of the program reads them no
//!   better.
//! - **Secrets** are refused, their metadata too, until [`SavedStore::allow_secrets`].
//!
//! What is spared is the server's work and the wire: loading takes as long as a list from a server in the
//! same process (0.96 to 1.08 of it for 100,000 pods, a save 0.3 to 0.5, by
//! `cargo bench -p kube-informer --bench warm_start`).
//!
//! What was saved is what pruning and the transform left, written by the type's `Serialize` (of a
//! [`Pruned`](crate::pruning::Pruned) one by that of the whole) and read by its `Deserialize`: a field that these leave out is gone. So is what is new in the type, until the object
//! changes; that is what the version of a [`SavedStore`] is for.
//!
//! To begin with objects of one's own instead, without a revision and without telling anybody, there is
//! [`InformerBuilder::known_objects`](crate::informer::InformerBuilder::known_objects) of the plain
//! informer: it lists nevertheless.

mod file;
mod format;
#[cfg(feature = "__fuzzing")]
pub(crate) mod fuzzing;
mod snapshotter;

pub(crate) use self::snapshotter::{Moment, Snapshotter, Storing, Unidentified};
pub use self::snapshotter::{SaveError, Saved};

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Where the store of an informer is saved to and loaded from, and what has to be the same.
///
/// Files are made with mode 0600 and folders with 0700, where there are modes. Beside the file stand
/// `….lock`, which keeps other writers out, and for the time of a save `….tmp`.
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
    /// The name follows from the kind and from what is listed.
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
    /// One file, for one informer.
    ///
    /// The version stands for everything that decides what an object looks like in the cache and that
    /// nobody can compare: the type and the transform. With another version than it was saved with, a
    /// store is not loaded; nor is one from which other fields were pruned, which is seen without it. `env!("CARGO_PKG_VERSION")`, or whatever names a build, is always right.
    pub fn in_file(path: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self::at(Location::File(path.into()), version.into())
    }

    /// A directory, for any number of informers: each has a file of its own, whose name is made of its
    /// kind, of what it lists and of what is pruned. Files of informers that are no more stay there. Informers of the same
    /// objects of several servers need a directory for each server.
    ///
    /// For the version see [`SavedStore::in_file`].
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

    /// Saves also while the informer runs, with pauses of this length, beginning with one. Without this
    /// call a program that is killed leaves what was saved at its last end. Zero is as if it were not
    /// called.
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause).filter(|pause| !pause.is_zero());
        self
    }

    /// Names the server, instead of asking it for the uid of its namespace `kube-system`: for programs
    /// that may not `get` that, and for sources that are no Kubernetes server. The name must be of this
    /// server alone.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Lets Secrets be saved, in the clear, and loaded.
    pub fn allow_secrets(mut self) -> Self {
        self.secrets = true;
        self
    }

    /// The wall clock by which the age of a saved store is told; the system's if never said.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }
}
