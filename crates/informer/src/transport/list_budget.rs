//! What is left of the limits of one list: its objects, bytes, pages and time.

use bytes::Bytes;
use tokio::time::Instant;

use super::{Body, Class, Error};
use crate::{
    clock,
    limits::{LIST_STALL, Limits},
};

/// Counts what one list brings, with all its pages, or a streaming list.
#[derive(Debug)]
pub(crate) struct ListBudget {
    limits: Limits,
    until: Instant,
    pages: u32,
    objects: usize,
    bytes: u64,
}

impl ListBudget {
    /// Of a list that begins now.
    pub(crate) fn begin(limits: Limits) -> Self {
        Self {
            limits,
            until: clock::from_now(limits.list_time),
            pages: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// One more page is to be asked for.
    pub(crate) fn page(&mut self) -> Result<(), Error> {
        let limit = self.limits.list_pages;
        if self.pages >= limit {
            return Err(exceeded(&format!("{limit} pages (Limits::list_pages)")));
        }
        self.pages += 1;
        Ok(())
    }

    /// So many more objects have come, whatever becomes of them.
    pub(crate) fn more_objects(&mut self, objects: usize) -> Result<(), Error> {
        self.objects += objects;
        self.objects_in_all(self.objects)
    }

    /// So many objects there are: of a list in which they come and go.
    pub(crate) fn objects_in_all(&self, objects: usize) -> Result<(), Error> {
        let limit = self.limits.objects;
        if objects > limit {
            return Err(exceeded(&format!("{limit} objects (Limits::objects)")));
        }
        Ok(())
    }

    /// So many more bytes have come.
    pub(crate) fn more_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.list_bytes;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limit {
            return Err(exceeded(&format!("{limit} bytes (Limits::list_bytes)")));
        }
        self.in_time()
    }

    /// Whether there is time left. For bytes that trickle, of which none is late.
    fn in_time(&self) -> Result<(), Error> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let limit = self.limits.list_time;
        let what = format!("the list takes longer than {limit:?} (Limits::list_time)");
        Err(Error::new(Class::Timeout, what))
    }

    /// Until when something must have come.
    pub(crate) fn deadline(&self) -> Instant {
        self.until.min(Instant::now() + LIST_STALL)
    }

    /// Nothing has.
    pub(crate) fn late(&self) -> Error {
        let stalled = || Error::new(Class::Timeout, "the list stalled");
        self.in_time().err().unwrap_or_else(stalled)
    }

    /// The next bytes of a page; `None` at its end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Error> {
        let next = body.next(Some(self.deadline())).await;
        let chunk = next.map_err(|_| self.late())?.transpose()?;
        self.more_bytes(chunk.as_ref().map_or(0, Bytes::len))?;
        Ok(chunk)
    }
}

fn exceeded(what: &str) -> Error {
    Error::new(Class::Protocol, format!("a list has more than {what}"))
}
