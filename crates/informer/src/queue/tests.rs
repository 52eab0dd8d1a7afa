//! Tests the message and the cause of the error that a queue returns for listed objects without a key.

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
fn the_error_of_a_list_counts_objects_without_keys_and_explains_the_first() {
    let errors = KeyErrors(vec![nameless("a@1", "no colon"), nameless("b@2", "no dot")]);
    assert_eq!(
        errors.to_string(),
        "couldn't create keys for 2 objects of a list"
    );
    let source = std::error::Error::source(&errors).unwrap();
    assert_eq!(source.to_string(), "no colon");
}
