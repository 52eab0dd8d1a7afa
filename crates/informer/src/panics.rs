//! Catches panics in user code that is called for one object, such as `Deserialize`, a transform, a key
//! function or an index function.
//!
//! Guarantees: the error [`Panicked`] does not contain the panic message. The message may quote the object,
//! and the object may be a Secret. The program's panic hook still prints the message.
//!
//! In a program built with `panic = "abort"`, the module catches nothing.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::limits::{MESSAGE_BYTES, one_line};

/// A call of user code panicked; the panic message is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Calls a user-supplied function, and catches its panic.
///
/// # Errors
/// Returns an error if the function panicked.
pub(crate) fn confined<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safe: the object that the call was for is dropped without being read again.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Panicked)
}

/// Returns a panic's message as one line of at most [`MESSAGE_BYTES`] bytes.
///
/// Must not be used for code that decodes, transforms or indexes objects: the message may quote a Secret.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    one_line(text.unwrap_or("no message"), MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_of_the_call() {
        assert_eq!(confined(|| 7), Ok(7));
        assert_eq!(confined(|| -> () { panic!("planted") }), Err(Panicked));
    }

    #[test]
    fn a_panic_message_is_one_line_for_any_payload() {
        assert_eq!(panic_message(&"two\nlines"), "two lines");
        assert_eq!(panic_message(&"formatted".to_owned()), "formatted");
        assert_eq!(panic_message(&7), "no message");
    }
}
