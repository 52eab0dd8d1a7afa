//! Tests the messages of [`SyncError`], and the next step that they suggest for each error class.

use std::{sync::Arc, time::Duration};

use expect_test::expect;

use super::errors::{classes, line, panicked};
use crate::{
    object::SourceId,
    status::{Activity, InformerError, StatusWriter, SyncError, SyncFailure},
    transport::Error,
};

/// Returns a sync error of `pods`. `prepare` sets the informer's status in the error.
fn sync_error(failure: SyncFailure, prepare: impl FnOnce(&StatusWriter)) -> SyncError {
    let writer = StatusWriter::new(1);
    prepare(&writer);
    SyncError {
        name: "pods".into(),
        expects: "v1 Pod".into(),
        failure,
        status: writer.reader().get(),
    }
}

/// Records a failed list, and a pause before the next request, in the status.
fn list_failed(writer: &StatusWriter, error: Error) {
    writer.failed(SourceId::default(), &Arc::new(error));
    writer.back_off(SourceId::default(), Duration::from_secs(1), 1);
}

fn listing(writer: &StatusWriter) {
    let listing = Activity::Listing {
        page: 2,
        objects: 500,
    };
    writer.activity(SourceId::default(), listing);
}

#[tokio::test(start_paused = true)]
async fn sync_errors() {
    let deadline = SyncFailure::Deadline(Duration::from_secs(5));
    let forbidden = || Error::from_status_body(403, br#"{"message":"pods is forbidden"}"#);
    let errors = [
        sync_error(deadline, listing),
        sync_error(deadline, |writer| list_failed(writer, forbidden())),
        sync_error(deadline, |writer| {
            writer.activity(SourceId::default(), Activity::Watching);
            writer.set_synced();
        }),
        sync_error(SyncFailure::Ended, StatusWriter::stopped),
        sync_error(SyncFailure::Ended, |writer| {
            writer.set_synced();
            writer.stopped();
        }),
        sync_error(SyncFailure::Ended, listing),
        sync_error(SyncFailure::Failed, |writer| {
            writer.stopped();
            writer.fail(InformerError {
                name: "pods".into(),
                expects: "v1 Pod".into(),
                cause: panicked(),
            });
        }),
        sync_error(SyncFailure::Refused, |writer| {
            list_failed(writer, forbidden());
        }),
        sync_error(SyncFailure::NotStarted, |_| ()),
    ];
    for error in &errors {
        match error.failure {
            SyncFailure::Deadline(_)
            | SyncFailure::Ended
            | SyncFailure::Failed
            | SyncFailure::Refused
            | SyncFailure::NotStarted => {}
        }
    }
    let lines: String = errors.iter().map(line).collect();
    expect![[r#"
        pods (v1 Pod) did not sync within 5s: not synced, listing (page 2, 500 objects so far)
        pods (v1 Pod) did not sync within 5s: not synced, waiting after failure 1; last error: pods is forbidden (0ns ago, failing for 0ns); grant "list" and "watch" on the resource
        pods (v1 Pod) did not sync within 5s: the handler has not processed all initial events; informer: synced, watching
        pods (v1 Pod) was stopped before it synced: not synced, stopped
        pods (v1 Pod) was stopped: synced, stopped
        pods (v1 Pod) ended before it synced; informer: not synced, listing (page 2, 500 objects so far)
        pods (v1 Pod) failed, and does not restart: not synced, stopped; failed: the reflector of pods panicked: index out of bounds
        pods (v1 Pod) can't sync, as the server rejects the requests: not synced, waiting after failure 1; last error: pods is forbidden (0ns ago, failing for 0ns); grant "list" and "watch" on the resource
        pods (v1 Pod) can't sync, as its factory was not started: not synced, not started; call start of the factory before the wait
    "#]].assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn the_next_step_of_a_sync_error_follows_from_the_class_of_the_last_error() {
    let lines = classes().into_iter().map(|class| {
        let error = sync_error(SyncFailure::Refused, |writer| {
            list_failed(writer, Error::new(class, "E"));
        });
        let text = error.to_string();
        let (_, next) = text.split_once("failing for 0ns)").unwrap();
        [class.as_str(), next, "\n"].concat()
    });
    expect![[r#"
        expired
        too_large_resource_version
        too_many_requests
        connection_refused; check that the server runs and is reachable
        connection; check that the server runs and is reachable
        timeout; check that the server runs and is reachable
        unauthorized; check the credentials of the client
        forbidden; grant "list" and "watch" on the resource
        not_found; install the CRD of the kind, or check its API version
        invalid; check the selectors and the other list options
        internal; check that the server runs and is reachable
        unavailable; check that the server runs and is reachable
        server; check that the server runs and is reachable
        protocol
        very_short_watch
        went_back
        store
    "#]]
    .assert_eq(&lines.collect::<String>());
}
