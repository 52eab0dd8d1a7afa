//! What is kept packed, seen from inside.

use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;

use super::*;
use crate::transport::{self, ByteStream, ListOptions};

/// Lists objects of which the first make a dictionary, and watches as many more.
struct Source {
    streams: bool,
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

fn body(text: String, ends: bool) -> BoxFuture<'static, Result<ByteStream, transport::Error>> {
    let text = stream::iter([Ok(Bytes::from(text))]);
    let body = if ends {
        text.boxed()
    } else {
        let bookmark = format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{}\"}}}}}}\n",
            2 * EACH
        );
        let later = sleep(Duration::from_secs(30)).map(|()| Ok(Bytes::from(bookmark)));
        let later = later.into_stream().chain(stream::pending());
        text.chain(later).boxed()
    };
    std::future::ready(Ok(body)).boxed()
}

impl ListerWatcher for Source {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<ByteStream, transport::Error>> {
        let items: Vec<_> = (0..EACH).map(object).collect();
        let items = items.join(",");
        body(
            format!(r#"{{"metadata":{{"resourceVersion":"{EACH}"}},"items":[{items}]}}"#),
            true,
        )
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, transport::Error>> {
        if options.send_initial_events != Some(true) {
            return body(added(EACH..2 * EACH), false);
        }
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{EACH}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
        );
        let text = format!("{}{end}\n{}", added(0..EACH), added(EACH..2 * EACH));
        body(text, false)
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

#[tokio::test(start_paused = true)]
async fn once_there_is_a_dictionary_everything_is_packed_with_it() {
    for streams in [true, false] {
        // Within the list, or within the watch: what came before is packed anew too.
        for dictionary_of in [EACH / 2, EACH + EACH / 2] {
            let source = Source { streams };
            let builder = SharedInformer::<ConfigMap>::builder(source).packed_from(dictionary_of);
            let (maps, controller) = builder.build();
            let mut running = std::pin::pin!(controller.run(sleep(Duration::from_secs(3600))));
            let waited = tokio::time::timeout(Duration::from_secs(60), &mut running).await;
            assert!(waited.is_err());
            let snapshot = maps.indexer().snapshot();
            assert_eq!(snapshot.len(), 2 * EACH);
            let whole = object(0).len();
            for object in snapshot.iter() {
                let packed = object.packed_bytes().unwrap();
                assert!(packed * 2 < whole, "{object:?}: {packed} of {whole}");
            }
        }
    }
}
