//! What both queues share: what is said of objects without a key.

use super::{
    KeyError, KeyErrors,
    script::{K, object},
};

fn nameless(text: &str, reason: &'static str) -> KeyError<K> {
    KeyError {
        object: object(text),
        source: reason.into(),
    }
}

#[test]
fn a_list_with_objects_without_keys_says_how_many_and_why_the_first_has_none() {
    let errors = KeyErrors(vec![nameless("a@1", "no colon"), nameless("b@2", "no dot")]);
    assert_eq!(
        errors.to_string(),
        "couldn't create keys for 2 objects of a list"
    );
    let source = std::error::Error::source(&errors).unwrap();
    assert_eq!(source.to_string(), "no colon");
}
