//! Builds and runs a real kube-apiserver and etcd on loopback.
//!
//! Guarantees:
//! - the binaries have the versions that `kube-apiserver/go.mod` and `etcd/go.mod` require, and are built
//!   once per version;
//! - both servers listen only on loopback, on free ports. kube-apiserver uses TLS that clients verify, and
//!   authenticates clients by a new random token for each control plane;
//! - both processes end, and their data is removed, when the [`ControlPlane`] is dropped.
//!
//! There is no scheduler, controller manager or kubelet: objects remain as clients write them.

mod binaries;
mod process;
mod control_plane;

pub use self::{binaries::Binaries, control_plane::ControlPlane};
