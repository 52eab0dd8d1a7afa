//! [`ListBudget`] enforces the limits of one list: the number of objects, bytes and pages, and the duration.
//!
//! The budget does not limit watches, except the initial events of a streaming list.

use bytes::Bytes;
use tokio::time::Instant;

use super::{Body, Class, Error};
use crate::{
    clock,
    limits::{LIST_STALL, Limits},
};

/// Counts the objects, bytes and pages of one list or streaming list, and enforces the limits.
#[derive(Debug)]
pub(crate) struct ListBudget {
    limits: Limits,
    until: Instant,
    pages: u32,
    objects: usize,
    bytes: u64,
}

impl ListBudget {
    pub(crate) fn begin(limits: Limits) -> Self {
        Self {
            limits,
            until: clock::from_now(limits.list_time),
            pages: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// Counts one page. The caller must call this method before it requests the page.
    ///
    /// # Errors
    /// Returns an error if the list already has the maximum number of pages.
    pub(crate) fn page(&mut self) -> Result<(), Error> {
        let limit = self.limits.list_pages;
        if self.pages >= limit {
            return Err(exceeded(&format!("{limit} pages"), "list_pages"));
        }
        self.pages += 1;
        Ok(())
    }

    /// Adds `objects` to the number of received objects. Objects that fail to decode also count.
    ///
    /// # Errors
    /// Returns an error if the list has too many objects.
    pub(crate) fn more_objects(&mut self, objects: usize) -> Result<(), Error> {
        self.objects += objects;
        self.objects_in_all(self.objects)
    }

    /// Checks the total number of objects in the list.
    ///
    /// For a streaming list, `objects` must not include objects that were deleted during the list.
    ///
    /// # Errors
    /// Returns an error if `objects` is above the limit.
    pub(crate) fn objects_in_all(&self, objects: usize) -> Result<(), Error> {
        let limit = self.limits.objects;
        if objects > limit {
            return Err(exceeded(&format!("{limit} objects"), "objects"));
        }
        Ok(())
    }

    /// Adds `bytes` to the number of bytes received for the list, and checks the limits of bytes and time.
    ///
    /// # Errors
    /// Returns an error if the list has too many bytes or takes too long.
    pub(crate) fn more_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.list_bytes;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limit {
            return Err(exceeded(&format!("{limit} bytes"), "list_bytes"));
        }
        self.in_time()
    }

    /// Returns an error if the list has exceeded its time limit.
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
    ///
    /// This is [`LIST_STALL`] from now, or the end of the list's time limit, if earlier.
    pub(crate) fn deadline(&self) -> Instant {
        self.until.min(Instant::now() + LIST_STALL)
    }

    /// Returns the error for a list whose next bytes did not arrive before the [`deadline`](Self::deadline).
    pub(crate) fn late(&self) -> Error {
        self.in_time().err().unwrap_or_else(stalled)
    }

    /// Waits for the next chunk of a page, and counts its bytes.
    ///
    /// # Errors
    /// Returns an error if the chunk can't be read, if the chunk does not arrive before the
    /// [`deadline`](Self::deadline), or if the list exceeds its limit of bytes or of time.
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

/// Returns the error for a list with more than `what`, such as `100 pages`.
///
/// `field` is the field of [`Limits`] that sets this limit.
fn exceeded(what: &str, field: &str) -> Error {
    let what = format!("the list has more than {what}; to allow more, raise Limits::{field}");
    Error::new(Class::Protocol, what)
}

/// Returns the error for a list that received no bytes for [`LIST_STALL`].
pub(crate) fn stalled() -> Error {
    let what = format!("the list stalled: no data within {LIST_STALL:?}");
    Error::new(Class::Timeout, what)
}
