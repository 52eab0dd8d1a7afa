//! Control loops of a Kubernetes cluster, for tests of controllers and for `kubectl-informer serve --controllers`.
//!
//! A controller that creates a `Deployment` waits until its pods are ready, and one that creates a `Job` waits until
//! it has ended. An API server alone lets both wait for ever. The loops of this crate do what kube-controller-manager,
//! kube-scheduler and kubelets do about it, and the nodes are simulated.
//!
//! ```
//! # use serde_json::json;
//! use kube_informer_apiserver::Server;
//! use kube_informer_control_plane::ControlPlane;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().build();
//! let control_plane = ControlPlane::builder().start(&server).await?;
//!
//! server.create(json!({
//!     "apiVersion": "apps/v1",
//!     "kind": "Deployment",
//!     "metadata": {"name": "web", "namespace": "default"},
//!     "spec": {
//!         "replicas": 3,
//!         "selector": {"matchLabels": {"app": "web"}},
//!         "template": {
//!             "metadata": {"labels": {"app": "web"}},
//!             "spec": {"containers": [{"name": "main", "image": "pause"}]},
//!         },
//!     },
//! }))?;
//! tokio::time::sleep(std::time::Duration::from_secs(5)).await; // virtual time
//! let web = server.get("apps/v1", "deployments", "default/web").ok_or("deleted")?;
//! assert_eq!(web["status"]["availableReplicas"], 3);
//! control_plane.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Loops
//!
//! [`Loop`] lists the loops; [`Builder::loops`] selects some. A namespace is emptied, and garbage is collected, by the
//! server itself (`Builder::garbage_collection` of `kube-informer-apiserver`).
//!
//! # Guarantees
//!
//! - All loops follow tokio's clock, so that with paused time a rollout of minutes takes milliseconds.
//! - Loops communicate only through objects on the server, and read objects from the caches of informers. A loop that
//!   has nothing to do sends no requests.
//! - Rejected requests and ended watches are retried.
//! - After [`ControlPlane::shutdown`] no task, watch or request of a loop remains.
//!
#![doc = include_str!("../containers.md")]

mod clock;
mod percent;
mod room;
pub mod step;
mod cache;
mod object;
mod expectations;
mod events;
mod control_plane;
mod node_agent;
mod deployment;
mod replica_set;
mod job;
mod disruption;
mod scheduler;
mod in_process;
mod builder;

pub use self::{
    builder::{Builder, StartError},
    control_plane::ControlPlane,
    node_agent::Logs,
    room::{NotAQuantity, thousandths},
    step::Loop,
};
