//! Tests the texts of transport errors of each class, and of every variant of the other error types.

use std::{io, sync::Arc, time::Duration};

use expect_test::expect;

use crate::{
    codec::Encoding,
    limits::Limits,
    object::{DecodeError, ObjectName, ResourceVersion},
    reflector::{self, StoreError},
    status::{ColdReason, Difference, FailureCause},
    transport::{Class, Error, ListBudget, stalled},
    warm_start::SaveError,
};

/// Asserts the texts of the errors in `$errors`.
///
/// `$expected` contains one line per error: its text, followed by its cause if it has one. `$variant` must
/// list all variants of the error type. `$errors` must contain each variant at least once.
macro_rules! assert_texts {
    ($errors:expr, [$($variant:pat),+ $(,)?], $expected:expr) => {{
        let errors = $errors;
        for error in &errors {
            match error {
                $($variant)|+ => {}
            }
        }
        $(
            let is_listed = errors.iter().any(|error| matches!(error, $variant));
            assert!(is_listed, "{} has no row", stringify!($variant));
        )+
        let lines: String = errors.iter().map(line).collect();
        $expected.assert_eq(&lines);
    }};
}

pub(super) fn line(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error} <- {source}\n"),
        None => format!("{error}\n"),
    }
}

fn name(text: &str) -> ObjectName {
    text.parse().unwrap()
}

fn revision(text: &str) -> ResourceVersion {
    text.into()
}

pub(super) fn classes() -> Vec<Class> {
    let next = |class: &Class| match class {
        Class::Expired => Some(Class::TooLargeResourceVersion),
        Class::TooLargeResourceVersion => Some(Class::TooManyRequests),
        Class::TooManyRequests => Some(Class::ConnectionRefused),
        Class::ConnectionRefused => Some(Class::Connection),
        Class::Connection => Some(Class::Timeout),
        Class::Timeout => Some(Class::Unauthorized),
        Class::Unauthorized => Some(Class::Forbidden),
        Class::Forbidden => Some(Class::NotFound),
        Class::NotFound => Some(Class::Invalid),
        Class::Invalid => Some(Class::Internal),
        Class::Internal => Some(Class::Unavailable),
        Class::Unavailable => Some(Class::Server),
        Class::Server => Some(Class::Protocol),
        Class::Protocol => Some(Class::VeryShortWatch),
        Class::VeryShortWatch => Some(Class::WentBack),
        Class::WentBack => Some(Class::Store),
        Class::Store => None,
    };
    std::iter::successors(Some(Class::Expired), next).collect()
}

pub(super) fn panicked() -> FailureCause {
    FailureCause::panicked("the reflector of pods", &"index out of bounds")
}

/// Returns errors of all classes, except the classes of [`is_created_elsewhere`].
fn created() -> Vec<Error> {
    let status = |code: u16, body: &str| Error::from_status_body(code, body.as_bytes());
    let too_large = r#"{"reason":"Timeout","message":"Too large resource version: 9, current: 3"}"#;
    let internal = r#"{"reason":"InternalError","message":"Internal error occurred: etcd"}"#;
    let limits = Limits {
        objects: 1,
        list_bytes: 1,
        list_pages: 0,
        list_time: Duration::ZERO,
        ..Limits::default()
    };
    let exceeded = || ListBudget::begin(limits);
    vec![
        status(410, r#"{"message":"too old resource version: 1 (5)"}"#),
        status(504, too_large),
        status(429, "Too many requests, please try again later."),
        status(401, r#"{"message":"Unauthorized"}"#),
        status(
            403,
            r#"{"message":"pods is forbidden: User \"u\" cannot list\nresource"}"#,
        ),
        status(404, "404 page not found"),
        status(422, r#"{"message":""}"#),
        status(500, internal),
        status(500, ""),
        status(302, "<html>"),
        status(502, "<html>"),
        status(504, "<html>"),
        stalled(),
        exceeded().page().unwrap_err(),
        exceeded().more_objects(2).unwrap_err(),
        exceeded().more_bytes(2).unwrap_err(),
        exceeded().more_bytes(1).unwrap_err(),
        list("[]").unwrap_err(),
        list(r#"{"items":[{"#).unwrap_err(),
        Encoding::of_content_type("application/cbor")
            .unwrap_err()
            .into(),
    ]
}

/// Returns whether only the client and the reflector create errors of this class.
fn is_created_elsewhere(class: Class) -> bool {
    match class {
        Class::ConnectionRefused | Class::VeryShortWatch | Class::WentBack | Class::Store => true,
        Class::Expired
        | Class::TooLargeResourceVersion
        | Class::TooManyRequests
        | Class::Connection
        | Class::Timeout
        | Class::Unauthorized
        | Class::Forbidden
        | Class::NotFound
        | Class::Invalid
        | Class::Internal
        | Class::Unavailable
        | Class::Server
        | Class::Protocol => false,
    }
}

#[tokio::test(start_paused = true)]
async fn transport_errors() {
    let errors = created();
    for class in classes() {
        let has_row = errors.iter().any(|error| error.class() == class);
        assert_ne!(has_row, is_created_elsewhere(class), "{class:?}");
    }
    let lines = errors
        .iter()
        .map(|error| [error.class().as_str(), ": ", &line(error)].concat());
    expect![[r#"
        expired: too old resource version: 1 (5)
        too_large_resource_version: Too large resource version: 9, current: 3
        too_many_requests: the server responded with status 429 and no readable message
        unauthorized: Unauthorized
        forbidden: pods is forbidden: User "u" cannot list resource
        not_found: the server could not find the requested resource
        invalid: the server responded with status 422 and no readable message
        internal: Internal error occurred: etcd
        server: the server responded with status 500 and no readable message
        protocol: the server responded with status 302 and no readable message
        unavailable: the server responded with status 502 and no readable message
        timeout: the server responded with status 504 and no readable message
        timeout: the list stalled: no data within 60s
        protocol: the list has more than 0 pages; to allow more, raise Limits::list_pages
        protocol: the list has more than 1 objects; to allow more, raise Limits::objects
        protocol: the list has more than 1 bytes; to allow more, raise Limits::list_bytes
        timeout: the list took longer than 0ns; to allow more time, raise Limits::list_time
        protocol: the response to the list is not a single JSON object
        connection: the response to the list ended before the end of the list
        protocol: the server responded with application/cbor instead of application/json
    "#]]
    .assert_eq(&lines.collect::<String>());
}

fn list(body: &'static str) -> Result<(), Error> {
    let mut splitter = Encoding::Json.list_splitter(1 << 20);
    splitter.feed(body.into(), &mut Vec::new())?;
    splitter.finish()?;
    Ok(())
}

#[test]
fn errors_of_an_informer() {
    let part = || Arc::from("the reflector of pods");
    assert_texts!(
        [
            panicked(),
            FailureCause::Cancelled { part: part() },
            FailureCause::Returned { part: part() },
        ],
        [
            FailureCause::Panicked { .. },
            FailureCause::Cancelled { .. },
            FailureCause::Returned { .. }
        ],
        expect![[r#"
            the reflector of pods panicked: index out of bounds
            the reflector of pods was cancelled: its Tokio runtime has shut down
            the reflector of pods returned although the informer was not stopped, which is a defect of kube-informer
        "#]]
    );
}

#[test]
fn errors_of_a_reflector() {
    let difference = |went_back| Difference {
        description: "pods".into(),
        revision: revision("7"),
        went_back,
        missing: 1,
        outdated: 0,
        replaced: 0,
        surplus: 0,
        examples: vec![name("shop/a")],
    };
    let other_kind = |object| reflector::Error::OtherKind {
        expected: "v1 Pod".into(),
        found: "v1 Node".to_owned(),
        object,
    };
    let process = |retried| reflector::Error::Process {
        object: name("shop/a"),
        reason: "no".to_owned(),
        retried,
    };
    let decode = DecodeError::new(Some(name("shop/a")), "spec", "missing field");
    assert_texts!(
        [
            reflector::Error::Transport(Arc::new(Error::new(Class::Timeout, "E"))),
            reflector::Error::Decode(decode),
            reflector::Error::Key {
                object: name("shop/a"),
                reason: "no".to_owned(),
            },
            process(true),
            process(false),
            reflector::Error::UnknownEvent("REBOOTED".to_owned()),
            reflector::Error::Mutated {
                object: name("shop/a"),
                revision: revision("7"),
            },
            other_kind(None),
            other_kind(Some(name("a"))),
            reflector::Error::Inconsistent(Arc::new(difference(true))),
            reflector::Error::Inconsistent(Arc::new(difference(false))),
        ],
        [
            reflector::Error::Transport(_),
            reflector::Error::Decode(_),
            reflector::Error::Key { .. },
            reflector::Error::Process { .. },
            reflector::Error::UnknownEvent(_),
            reflector::Error::Mutated { .. },
            reflector::Error::OtherKind { .. },
            reflector::Error::Inconsistent(_),
        ],
        expect![[r#"
            E
            shop/a can't be decoded: missing field at spec
            shop/a has no key: no
            shop/a was not processed, and is queued again: no
            shop/a was not processed: no
            unknown type of watch event: "REBOOTED"
            shop/a at revision 7 was modified in the cache, which all handlers and readers share; modify a clone instead
            received v1 Node, expected v1 Pod
            received v1 Node a, expected v1 Pod
            pods: the server has not reached revision 7 of the cache: it was restored from a backup, or is another server
            pods: the cache differs from the server at revision 7: 1 missing, 0 outdated, 0 replaced, 0 surplus (shop/a)
        "#]]
    );
}

#[test]
fn errors_of_a_store() {
    assert_texts!(
        [StoreError::Refused("full".to_owned()), StoreError::Gone],
        [StoreError::Refused(_), StoreError::Gone],
        expect![[r#"
            the store rejected the change: full
            the store accepts no more changes
        "#]]
    );
}

#[test]
fn reasons_of_a_cold_start() {
    assert_texts!(
        [
            ColdReason::NoFile,
            ColdReason::Unreadable("permission denied".to_owned()),
            ColdReason::Damaged("its checksum is wrong".to_owned()),
            ColdReason::OtherFormat(9),
            ColdReason::OtherServer,
            ColdReason::OtherKind {
                saved: "v1 Node".to_owned(),
            },
            ColdReason::OtherScope {
                saved: "/api/v1/pods".to_owned(),
                wanted: "/api/v1/namespaces/shop/pods".to_owned(),
            },
            ColdReason::OtherVersion {
                saved: "2".to_owned(),
            },
            ColdReason::OtherPruning,
            ColdReason::WentBack(revision("7")),
            ColdReason::Unidentified,
            ColdReason::ServerUnknown("forbidden".to_owned()),
            ColdReason::Refused("forbidden".to_owned()),
            ColdReason::SecretsRefused,
        ],
        [
            ColdReason::NoFile,
            ColdReason::Unreadable(_),
            ColdReason::Damaged(_),
            ColdReason::OtherFormat(_),
            ColdReason::OtherServer,
            ColdReason::OtherKind { .. },
            ColdReason::OtherScope { .. },
            ColdReason::OtherVersion { .. },
            ColdReason::OtherPruning,
            ColdReason::WentBack(_),
            ColdReason::Unidentified,
            ColdReason::ServerUnknown(_),
            ColdReason::Refused(_),
            ColdReason::SecretsRefused,
        ],
        expect![[r#"
            no store is saved there
            the saved store can't be read: permission denied
            the saved store is damaged: its checksum is wrong
            the saved store has format 9, which this version does not read
            the store was saved from another server
            the saved store has other objects: v1 Node
            the saved store has /api/v1/pods, and the informer requests /api/v1/namespaces/shop/pods
            the store was saved as version "2", and the program uses another version
            the saved objects were pruned of other fields
            the server has not reached revision 7, up to which the store was saved
            the transport does not implement ListerWatcher::server or ListerWatcher::collection
            the identity of the server is unknown: forbidden; grant `get` on namespace kube-system, or set SavedStore::server
            the server rejects the requests of a warm start: forbidden
            Secrets are neither saved nor loaded; to allow it, call SavedStore::allow_secrets
        "#]]
    );
}

#[test]
fn errors_of_a_save() {
    assert_texts!(
        [
            SaveError::NoSavedStore,
            SaveError::SecretsRefused,
            SaveError::NotSynced,
            SaveError::Unidentified,
            SaveError::ServerUnknown(Error::new(Class::Forbidden, "forbidden")),
            SaveError::Unsettled,
            SaveError::Busy("pods.store".into()),
            SaveError::TooLarge,
            SaveError::Encode(name("shop/a")),
            SaveError::Panicked,
            SaveError::Stopped,
            SaveError::Io {
                path: "pods.store".into(),
                source: io::Error::other("disk full"),
            },
        ],
        [
            SaveError::NoSavedStore,
            SaveError::SecretsRefused,
            SaveError::NotSynced,
            SaveError::Unidentified,
            SaveError::ServerUnknown(_),
            SaveError::Unsettled,
            SaveError::Busy(_),
            SaveError::TooLarge,
            SaveError::Encode(_),
            SaveError::Panicked,
            SaveError::Stopped,
            SaveError::Io { .. },
        ],
        expect![[r#"
            the informer has no saved store; set one with Builder::warm_start
            Secrets are not saved; to allow it, call SavedStore::allow_secrets
            the informer has not synced; save after wait_for_sync
            the transport does not implement ListerWatcher::server or ListerWatcher::collection
            the identity of the server is unknown; grant `get` on namespace kube-system, or set SavedStore::server <- forbidden
            changes wait in the queue for a handler whose buffer is full; save again later
            another process or informer is writing pods.store
            the store exceeds a limit: 16 MiB per object, 4 GiB, or 5,000,000 objects
            shop/a can't be serialized as JSON
            serializing an object as JSON panicked
            the informer has stopped
            pods.store can't be written <- disk full
        "#]]
    );
}

#[cfg(feature = "client")]
#[test]
fn errors_of_a_kind() {
    use crate::factory::{DiscoverError, KindError, OptionsConflict};

    assert_texts!(
        [
            KindError::Malformed {
                field: "plural",
                value: "a/b".to_owned(),
            },
            KindError::NotWatchable {
                plural: "tokenreviews".to_owned(),
            },
            KindError::Options(OptionsConflict::new("v1 Pod", "resync period")),
        ],
        [
            KindError::Malformed { .. },
            KindError::NotWatchable { .. },
            KindError::Options(_)
        ],
        expect![[r#"
            invalid plural "a/b" of a kind
            the server does not support list and watch of tokenreviews
            the factory already has an informer of v1 Pod in this scope with another resync period; use the same options, or another factory
        "#]]
    );
    let unknown = |stale: &[&str]| DiscoverError::Unknown {
        name: "unicorns".to_owned(),
        stale: stale.iter().copied().map(str::to_owned).collect(),
    };
    assert_texts!(
        [
            unknown(&[]),
            unknown(&["v1.a.io", "v1.b.io"]),
            DiscoverError::Server(Error::new(Class::Timeout, "E")),
        ],
        [DiscoverError::Unknown { .. }, DiscoverError::Server(_)],
        expect![[r#"
            the server has no kind named "unicorns"
            the server has no kind named "unicorns"; it may be in v1.a.io, v1.b.io, whose API server does not respond
            the discovery of the server's kinds failed <- E
        "#]]
    );
}
