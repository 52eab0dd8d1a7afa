//! Decides what the garbage collector of Kubernetes does: which objects it deletes, and which owner
//! references and finalizers it removes.
//!
//! An owner reference names an owner by `apiVersion`, `kind`, `name` and uid. The object with the reference
//! is a dependent of the owner.
//!
//! Guarantees:
//! - an object is deleted when it has owner references and none of their owners exists. A reference to an owner that
//!   does not exist is removed if another owner exists;
//! - an owner whose deletion is in the foreground keeps its finalizer `foregroundDeletion` until no dependent with
//!   `blockOwnerDeletion` is left. Its dependents are deleted, at any depth;
//! - an owner whose deletion orphans its dependents keeps its finalizer `orphan` until no dependent refers to it;
//! - only objects with owner references, their owners, and objects that wait for dependents have a node;
//! - equal changes in the same order lead to equal decisions in the same order.
//!
//! The module follows `pkg/controller/garbagecollector` of Kubernetes 1.36. It reads no storage and writes
//! nothing: [`Graph::observe`] receives every change, [`Graph::next`] returns the decisions, and
//! [`verb::garbage_collection`](crate::verb::garbage_collection) carries them out.

mod graph;
mod node;
mod plan;
mod queue;
mod seen;
#[cfg(test)]
mod tests;

pub(crate) use graph::Graph;
pub(crate) use node::{Place, Target};
pub(crate) use plan::{Change, Found, Objects, Plan, Policy};
pub(crate) use queue::Task;
pub(crate) use seen::Seen;
