//! Uses an indexer (a store with indices) without an informer, a cluster or an async runtime.
//!
//! The example looks up objects in an index by the label `app`.
//!
//! `cargo run -p kube-informer --example index_by_label`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/args.rs"]
mod args;
#[path = "setting/exit.rs"]
mod exit;

use std::process::ExitCode;

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_core::{ObjectMeta, ResourceExt};
use kube_informer::{
    Indexers, ObjectName,
    indexer::{self, NoSuchIndex},
};

fn main() -> ExitCode {
    exit::code(index_by_label())
}

fn index_by_label() -> anyhow::Result<()> {
    // Checks the arguments that all examples accept; this one needs no cluster.
    args::parse()?;
    let by_app = Indexers::new().with("app", |pod: &Pod| pod.labels().get("app").cloned());
    let (indexer, mut writer) = indexer::new(by_app)?;
    writer.add(pod("ns1", "pod1", "l1"))?;
    writer.add(pod("ns2", "pod2", "l2"))?;

    let names = indexer.index_keys("app", "l1")?;
    println!("{names:?}");
    ensure!(names == [ObjectName::namespaced("ns1", "pod1")]);

    // A snapshot does not change; later writes are visible only in later snapshots.
    let before = indexer.snapshot();
    writer.add(pod("ns1", "pod1", "l2"))?;
    println!("app=l2 before: {:?}", before.index_keys("app", "l2")?);
    println!("app=l2 now:    {:?}", indexer.index_keys("app", "l2")?);
    ensure!(format!("{:?}", before.index_keys("app", "l2")?) == "[ns2/pod2]");
    ensure!(format!("{:?}", indexer.index_keys("app", "l2")?) == "[ns1/pod1, ns2/pod2]");
    ensure!(indexer.index_keys("app", "l1")?.is_empty());

    let unknown: Result<_, NoSuchIndex> = indexer.index_keys("node", "node-7");
    ensure!(unknown.is_err(), "an index by node was found");
    Ok(())
}

fn pod(namespace: &str, name: &str, app: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}
