//! Confines a panic in user code to the call that it was made for.
//!
//! Guarantees: a panic in a function that is called for one object (`Deserialize`, a transform, a key or
//! an index function) becomes an error about that object. The error says which function it was, and not
//! the panic's message: that may quote the object, which may be a secret. The panic hook of the program
//! has printed the message already. Nothing is caught where the program is built with
//! `panic = "abort"`, which ends the process at the first panic.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::limits::{MESSAGE_BYTES, one_line};

/// Called code panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Calls user code.
///
/// # Errors
/// It panicked.
pub(crate) fn confined<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // What the call leaves behind is dropped with the object that it was for, and never read.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Panicked)
}

/// The message of a panic in code that is not called for one object, as one line of at most
/// [`MESSAGE_BYTES`].
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    one_line(text.unwrap_or("no message"), MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_confined_to_its_call() {
        assert_eq!(confined(|| 7), Ok(7));
        assert_eq!(confined(|| -> () { panic!("planted") }), Err(Panicked));
    }

    #[test]
    fn a_message_is_one_line_whatever_the_panic_carries() {
        assert_eq!(panic_message(&"two\nlines"), "two lines");
        assert_eq!(panic_message(&"formatted".to_owned()), "formatted");
        assert_eq!(panic_message(&7), "no message");
    }
}
