//! Tests that an informer compresses all its objects with a dictionary.
//!
//! Once there is a dictionary, the informer also compresses the objects that it received before.

use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;

use super::*;
use crate::transport::{self, ListOptions, Response};

/// A test server whose list contains [`EACH`] objects.
///
/// If `more_follow` is true, each watch adds [`EACH`] other objects.
struct Source {
    streams: bool,
    more_follow: bool,
}

const EACH: usize = 40;

fn object(number: usize) -> String {
    let text = "what they all have in common is this text, which a dictionary has then";
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{number}","resourceVersion":"{}"}},"data":{{"text":"{text}"}}}}"#,
        number + 1
    )
}

fn added(numbers: std::ops::Range<usize>) -> String {
    let event = |number| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object(number));
    numbers.map(event).collect()
}

fn bookmark(revision: usize, more: &str) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{revision}\"{more}}}}}}}\n"
    )
}

type Answer = BoxFuture<'static, Result<Response, transport::Error>>;

fn list(text: String) -> Answer {
    let body = stream::iter([Ok(Bytes::from(text))]).boxed();
    std::future::ready(Ok(body.into())).boxed()
}

/// Returns a watch response that sends `text` and, after 30 seconds, `later`. The response never ends.
fn watch(text: String, later: Option<String>) -> Answer {
    let later = stream::iter(later).then(|text| async {
        sleep(Duration::from_secs(30)).await;
        Ok(Bytes::from(text))
    });
    let text = stream::iter([Ok(Bytes::from(text))]);
    let body = text.chain(later).chain(stream::pending());
    std::future::ready(Ok(body.boxed().into())).boxed()
}

impl ListerWatcher for Source {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let items: Vec<_> = (0..EACH).map(object).collect();
        let items = items.join(",");
        list(format!(
            r#"{{"metadata":{{"resourceVersion":"{EACH}"}},"items":[{items}]}}"#
        ))
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let (more, later) = if self.more_follow {
            (added(EACH..2 * EACH), Some(bookmark(2 * EACH, "")))
        } else {
            (String::new(), None)
        };
        if options.send_initial_events != Some(true) {
            return watch(more, later);
        }
        let end = bookmark(
            EACH,
            r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
        );
        watch(format!("{}{end}{more}", added(0..EACH)), later)
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

/// Asserts that an informer compresses all objects to less than half of their size, and returns the number
/// of objects.
///
/// The dictionary is sampled from `dictionary_of` objects.
async fn packed_from(source: Source, dictionary_of: usize) -> usize {
    let builder = SharedInformer::<ConfigMap>::builder(source).packed_from(dictionary_of);
    let (maps, controller) = builder.build();
    let mut running = std::pin::pin!(controller.run(sleep(Duration::from_secs(3600))));
    let waited = tokio::time::timeout(Duration::from_secs(60), &mut running).await;
    assert!(waited.is_err());
    let snapshot = maps.indexer().snapshot();
    let whole = object(0).len();
    for object in snapshot.iter() {
        let packed = object.packed_bytes().unwrap();
        assert!(packed * 2 < whole, "{object:?}: {packed} of {whole}");
    }
    snapshot.len()
}

#[tokio::test(start_paused = true)]
async fn all_objects_are_packed_with_the_dictionary_once_it_exists() {
    for streams in [true, false] {
        // The dictionary is created during the list or during the watch; earlier objects are repacked.
        for dictionary_of in [EACH / 2, EACH + EACH / 2] {
            let source = Source {
                streams,
                more_follow: true,
            };
            assert_eq!(packed_from(source, dictionary_of).await, 2 * EACH);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_without_later_events_is_packed_at_its_end() {
    for streams in [true, false] {
        let source = Source {
            streams,
            more_follow: false,
        };
        // Within a list, a dictionary needs four times as many objects, so it is created at the end of the
        // list.
        assert_eq!(packed_from(source, EACH / 2).await, EACH);
    }
}
