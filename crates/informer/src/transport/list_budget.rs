//! [`ListBudget`] enforces the limits of one list on objects, bytes, pages and time.

use bytes::Bytes;
use tokio::time::Instant;

use super::{Body, Class, Error};
use crate::{
    clock,
    limits::{LIST_STALL, Limits},
};

/// Counts the objects, bytes and pages that one list delivers, or one streaming list, and returns an error at
/// a limit.
#[derive(Debug)]
pub(crate) struct ListBudget {
    limits: Limits,
    until: Instant,
    pages: u32,
    objects: usize,
    bytes: u64,
}

impl ListBudget {
    /// Starts to count for a new list, whose time begins now.
    pub(crate) fn begin(limits: Limits) -> Self {
        Self {
            limits,
            until: clock::from_now(limits.list_time),
            pages: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// Counts one page, before it is requested.
    pub(crate) fn page(&mut self) -> Result<(), Error> {
        let limit = self.limits.list_pages;
        if self.pages >= limit {
            return Err(exceeded(&format!("{limit} pages"), "list_pages"));
        }
        self.pages += 1;
        Ok(())
    }

    /// Counts `objects` more received objects, valid or not.
    pub(crate) fn more_objects(&mut self, objects: usize) -> Result<(), Error> {
        self.objects += objects;
        self.objects_in_all(self.objects)
    }

    /// Checks the current number of objects of a streaming list. It is not the sum of received objects,
    /// because objects can also be deleted.
    pub(crate) fn objects_in_all(&self, objects: usize) -> Result<(), Error> {
        let limit = self.limits.objects;
        if objects > limit {
            return Err(exceeded(&format!("{limit} objects"), "objects"));
        }
        Ok(())
    }

    /// Counts `bytes` more received bytes.
    pub(crate) fn more_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.list_bytes;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limit {
            return Err(exceeded(&format!("{limit} bytes"), "list_bytes"));
        }
        self.in_time()
    }

    /// Checks that the list has not taken longer than its time limit, as it would with a server that keeps
    /// sending bytes slowly.
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

    /// Returns the time by which the next bytes of the list must arrive.
    pub(crate) fn deadline(&self) -> Instant {
        self.until.min(Instant::now() + LIST_STALL)
    }

    /// Returns the error for a list whose deadline has passed without bytes.
    pub(crate) fn late(&self) -> Error {
        self.in_time().err().unwrap_or_else(stalled)
    }

    /// Waits for the next chunk of a page, counts it and returns it; returns `None` at the end of the page.
    ///
    /// # Cancel safety
    /// Dropping the future loses no bytes.
    pub(crate) async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Error> {
        let next = body.next(Some(self.deadline())).await;
        let chunk = next.map_err(|_| self.late())?.transpose()?;
        self.more_bytes(chunk.as_ref().map_or(0, Bytes::len))?;
        Ok(chunk)
    }
}

/// Returns the error for a list that exceeds a limit. `field` is the field of [`Limits`] to raise.
fn exceeded(what: &str, field: &str) -> Error {
    let what = format!("the list has more than {what}; to allow more, raise Limits::{field}");
    Error::new(Class::Protocol, what)
}

/// Returns the error for a list that receives no data within [`LIST_STALL`].
pub(crate) fn stalled() -> Error {
    let what = format!("the list stalled: no data within {LIST_STALL:?}");
    Error::new(Class::Timeout, what)
}
