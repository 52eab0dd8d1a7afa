//! A real kube-apiserver and etcd on loopback: built from their Go modules, started, ended.
//!
//! Guarantees:
//! - the binaries are those of the versions that `kube-apiserver/go.mod` and `etcd/go.mod` require, built
//!   once per version;
//! - the server listens on loopback only, on free ports, with TLS that clients verify, and authenticates
//!   them by a token that is drawn for each start;
//! - both processes end, and their data is removed, when the [`ControlPlane`] is dropped.
//!
//! There is no scheduler, no controller manager and no kubelet: objects stay as clients write them.

mod binaries;
mod process;
mod control_plane;

pub use self::{binaries::Binaries, control_plane::ControlPlane};
