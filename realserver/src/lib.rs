//! Builds and runs a real kube-apiserver and etcd on the loopback interface.
//!
//! Guarantees:
//!
//! - The binaries have the versions that `kube-apiserver/go.mod` and `etcd/go.mod` require, unless a caller
//!   selects another version or `KUBEBUILDER_ASSETS` is set. Each version is built once.
//! - Without additional flags, both servers listen only on the loopback interface, on free ports.
//!   kube-apiserver uses TLS with a certificate that clients verify, and authenticates clients by a random
//!   token. Each control plane has a new token.
//! - Both processes end and their data is removed when the [`ControlPlane`] is dropped.
//!
//! There is no scheduler, controller manager or kubelet, so objects remain as clients write them.

mod binaries;
mod process;
mod control_plane;
mod failures;

pub use self::{binaries::Binaries, control_plane::ControlPlane};
