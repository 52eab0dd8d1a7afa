//! [`ListBudget`]: enforces the limits of one list on objects, bytes, pages and time.

use bytes::Bytes;
use tokio::time::Instant;

use super::{Body, Class, Error};
use crate::{
    clock,
    limits::{LIST_STALL, Limits},
};

/// Counts what one list delivers with all its pages, or a streaming list.
#[derive(Debug)]
pub(crate) struct ListBudget {
    limits: Limits,
    until: Instant,
    pages: u32,
    objects: usize,
    bytes: u64,
}

impl ListBudget {
    /// Starts the budget of a new list.
    pub(crate) fn begin(limits: Limits) -> Self {
        Self {
            limits,
            until: clock::from_now(limits.list_time),
            pages: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// Counts a page, before it is requested.
    pub(crate) fn page(&mut self) -> Result<(), Error> {
        let limit = self.limits.list_pages;
        if self.pages >= limit {
            return Err(exceeded(&format!("{limit} pages"), "list_pages"));
        }
        self.pages += 1;
        Ok(())
    }

    /// Counts received objects, valid or not.
    pub(crate) fn more_objects(&mut self, objects: usize) -> Result<(), Error> {
        self.objects += objects;
        self.objects_in_all(self.objects)
    }

    /// Checks the total number of objects, for a streaming list, where objects are also deleted.
    pub(crate) fn objects_in_all(&self, objects: usize) -> Result<(), Error> {
        let limit = self.limits.objects;
        if objects > limit {
            return Err(exceeded(&format!("{limit} objects"), "objects"));
        }
        Ok(())
    }

    /// Counts received bytes.
    pub(crate) fn more_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.list_bytes;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limit {
            return Err(exceeded(&format!("{limit} bytes"), "list_bytes"));
        }
        self.in_time()
    }

    /// Checks the time limit of the list, for a server that keeps sending bytes slowly.
    fn in_time(&self) -> Result<(), Error> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let limit = self.limits.list_time;
        let what = format!(
            "the list took longer than {limit:?}; to allow more time, raise Limits::list_time"
        );
        Err(Error::new(Class::Timeout, what))
    }

    /// Returns the time by which the next bytes must arrive.
    pub(crate) fn deadline(&self) -> Instant {
        self.until.min(Instant::now() + LIST_STALL)
    }

    /// Returns the error for a missed deadline.
    pub(crate) fn late(&self) -> Error {
        self.in_time().err().unwrap_or_else(stalled)
    }

    /// Returns the next bytes of a page; `None` at its end.
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

/// Returns the error for a list above a limit, with the field of [`Limits`] that raises it.
fn exceeded(what: &str, field: &str) -> Error {
    let what = format!("the list has more than {what}; to allow more, raise Limits::{field}");
    Error::new(Class::Protocol, what)
}

/// Returns the error for a list that receives no data within [`LIST_STALL`].
pub(crate) fn stalled() -> Error {
    let what = format!("the list stalled: no data within {LIST_STALL:?}");
    Error::new(Class::Timeout, what)
}
