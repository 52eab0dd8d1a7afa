//! Tests that concurrent readers of a lazy object share one decoding, and that a decode error is reported
//! only once.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::*;
use crate::object::body::Form;

static DECODED: AtomicUsize = AtomicUsize::new(0);

fn decode(encoded: Encoded<'_>) -> Result<String, Unfit> {
    DECODED.fetch_add(1, Ordering::Relaxed);
    let text = String::from_utf8_lossy(encoded.bytes()).into_owned();
    if text.contains("bad") {
        return Err(Unfit {
            field: "data".to_owned(),
            reason: "planted".to_owned(),
        });
    }
    Ok(text)
}

#[test]
fn concurrent_readers_share_one_result_and_an_error_is_reported_once() {
    let reported = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reported);
    let on_broken = move |error: &DecodeError| {
        assert_eq!(error.field(), "data");
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let lazy = Arc::new(LazyDecoder::new(decode, Box::new(on_broken)));
    let object = |name: &str| {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"u","labels":{{"a":"b"}}}}}}"#);
        let encoded = Codec::Json.object(json.as_bytes());
        let identity = encoded.identity().unwrap();
        Form::Lazy(Arc::clone(&lazy))
            .keep(ObjectName::of(&identity).unwrap(), &identity, encoded, 7)
            .unwrap()
    };
    let (good, bad) = (object("good"), object("bad"));
    assert_eq!(DECODED.load(Ordering::Relaxed), 0);
    let clone = good.clone();
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..8 {
            readers.push(scope.spawn(|| (good.get().unwrap(), bad.get().unwrap_err())));
        }
        let read: Vec<_> = readers.into_iter().map(|it| it.join().unwrap()).collect();
        for (object, error) in &read {
            assert!(Arc::ptr_eq(object, &read[0].0));
            assert_eq!(*error, read[0].1);
        }
    });
    assert_eq!(DECODED.load(Ordering::Relaxed), 2);
    assert_eq!(reported.load(Ordering::Relaxed), 1);
    assert!(Arc::ptr_eq(&good.get().unwrap(), &clone.get().unwrap()));
    let seen = object("seen");
    seen.peek().unwrap();
    let read = seen.get().unwrap();
    assert_eq!(DECODED.load(Ordering::Relaxed), 4, "a peek keeps nothing");
    assert!(Arc::ptr_eq(&read, &seen.peek().unwrap()));
    assert!(good.live().is_none() && bad.broken().is_none());
    assert_eq!(bad.revision().to_string(), good.revision().to_string());
}
