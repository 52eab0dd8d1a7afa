//! What a test's own thread logs.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use tracing::{
    Dispatch, Level,
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_subscriber::fmt::MakeWriter;

/// Captures logs from debug on for as long as it lives, on this thread; a test's runtime has no other.
pub(crate) struct Logs {
    text: Text,
    _guard: DefaultGuard,
    /// While there is only one subscriber, tracing asks that of the thread that comes to a log line
    /// first whether the line is wanted, and keeps the answer for all threads.
    _second: Dispatch,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Logs {
    pub(crate) fn capture() -> Self {
        let second = Dispatch::new(NoSubscriber::default());
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_target(false)
            .without_time()
            .with_ansi(false)
            .with_writer(text.clone())
            .finish();
        Self {
            text,
            _guard: tracing::subscriber::set_default(subscriber),
            _second: second,
        }
    }

    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.text.0.lock())).unwrap()
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Text {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
