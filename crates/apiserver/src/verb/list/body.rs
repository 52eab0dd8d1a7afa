//! Writes the body of a list in chunks, while the client reads the body.
//!
//! Guarantees:
//! - a list shares its objects with the store. The additional memory of a list is at most one chunk of
//!   [`CHUNK_BYTES`] and the JSON of one object;
//! - the [`ResponseBudget`] limits the total memory of the lists that clients have not finished reading.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use super::Page;
use crate::body::{Body, BoxError, CHUNK_BYTES, next_piece};
use crate::clock::Clock;
use crate::negotiate::Representation;
use crate::resource::Resource;
use crate::response_budget::ResponseBudget;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::table::Table;

/// An iterator over the chunks of the body of one list.
struct Chunks {
    head: Option<Vec<u8>>,
    entries: std::vec::IntoIter<Arc<Entry>>,
    tail: Option<Vec<u8>>,
    resource: Arc<Resource>,
    representation: Representation,
    table: Table,
    first: bool,
    /// The part of a long chunk that has not been returned yet.
    rest: Bytes,
}

impl Chunks {
    /// Returns `chunk`, or only its first [`CHUNK_BYTES`] bytes if the chunk is longer than twice this
    /// length.
    ///
    /// The remaining bytes are stored in `rest`.
    fn begin(&mut self, chunk: Vec<u8>) -> Bytes {
        if chunk.len() <= 2 * CHUNK_BYTES {
            return chunk.into();
        }
        self.rest = chunk.into();
        next_piece(&mut self.rest)
    }
}

/// Reserves memory for a page of a list in `budget`, and returns the response body of the page.
///
/// # Errors
///
/// Returns a 429 error if the budget has too little free memory.
pub(crate) fn write(
    budget: &Arc<ResponseBudget>,
    resource: &Arc<Resource>,
    page: Page,
    representation: Representation,
    clock: Clock,
) -> Result<Body, ApiError> {
    let table = Table::new(resource, clock);
    let (head, tail) = envelope(resource, &page, representation, &table);
    let slots = ResponseBudget::slots(page.entries.iter());
    let chunks = Chunks {
        head: Some(head),
        entries: page.entries.into_iter(),
        tail: Some(tail),
        resource: Arc::clone(resource),
        representation,
        table,
        first: true,
        rest: Bytes::new(),
    };
    let content = budget.hold(slots, chunks)?;
    let next = move || content.with(Iterator::next).map_err(BoxError::from);
    let chunks = std::iter::from_fn(move || next().transpose());
    Ok(Body::stream(stream::iter(chunks)))
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if !self.rest.is_empty() {
            return Some(next_piece(&mut self.rest));
        }
        let mut chunk = match self.head.take() {
            Some(head) => head,
            None if self.tail.is_some() => Vec::with_capacity(CHUNK_BYTES),
            None => return None,
        };
        while chunk.len() < CHUNK_BYTES {
            let Some(entry) = self.entries.next() else {
                chunk.extend(self.tail.take().into_iter().flatten());
                return Some(self.begin(chunk));
            };
            if !std::mem::take(&mut self.first) {
                chunk.push(b',');
            }
            match self.representation {
                Representation::Object if self.resource.kind.custom => {
                    entry.write_object(&self.resource, &mut chunk);
                }
                Representation::Object => entry.write_item(&mut chunk),
                Representation::Metadata => entry.write_metadata(&mut chunk),
                Representation::Table(include) => self.table.write_row(&entry, include, &mut chunk),
            }
        }
        Some(self.begin(chunk))
    }
}

/// Returns the JSON of the response body before the items, and the JSON after the items.
fn envelope(
    resource: &Resource,
    page: &Page,
    representation: Representation,
    table: &Table,
) -> (Vec<u8>, Vec<u8>) {
    let metadata = list_metadata(page);
    let (head, tail) = match representation {
        Representation::Object => {
            let api_version = json!(resource.kind.api_version());
            let kind = json!(format!("{}List", resource.kind.kind));
            if resource.kind.custom {
                let head = format!("{{\"apiVersion\":{api_version},\"items\":[");
                (
                    head,
                    format!("],\"kind\":{kind},\"metadata\":{metadata}}}\n"),
                )
            } else {
                let head = format!(
                    "{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{metadata},\"items\":["
                );
                (head, "]}\n".to_owned())
            }
        }
        Representation::Metadata => {
            let head = format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"items\":["
            );
            (head, "]}\n".to_owned())
        }
        Representation::Table(_) => {
            let columns = table.columns();
            let head = format!(
                "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"columnDefinitions\":{columns},\"rows\":["
            );
            (head, "]}\n".to_owned())
        }
    };
    (head.into_bytes(), tail.into_bytes())
}

fn list_metadata(page: &Page) -> Value {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.continue_token {
        metadata["continue"] = json!(token);
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}
