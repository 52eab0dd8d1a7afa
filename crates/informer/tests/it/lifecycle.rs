//! Tests of informers that stop while the other informers of their factory continue to run.
//!
//! If the program requests a stopped informer again, the factory constructs a new informer.

mod definitions;
mod holds;
mod stopped;

use std::{pin::pin, time::Duration};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::{InitialList, SharedInformer, SharedInformerFactory, shared_informer::Stopped};
use kube_informer_apiserver::Server;
use tokio::{task::yield_now, time::sleep};

use crate::{
    setting::{LONG, Trace, factory_builder, labelled, pod},
    stops::{alive, until_gone},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a factory whose informers start with a plain list instead of a streaming list.
fn factory(server: &Server) -> SharedInformerFactory {
    factory_builder(server.client())
        .initial_list(InitialList::List)
        .build()
}

/// Waits until the cache and the handlers have received all changes of the server so far.
async fn caught_up(pods: &SharedInformer<Pod>, server: &Server) {
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    let reached = pods.wait_for_revision(server.revision(), LONG);
    reached.await.unwrap();
    pods.handlers_idle().await;
}
