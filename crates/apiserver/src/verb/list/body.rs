//! Writes the body of a list in chunks, while the client reads the body.
//!
//! Guarantees:
//! - a list in JSON or YAML shares its objects with the store. A list needs additional memory for at most one
//!   chunk of [`CHUNK_BYTES`] and the text of one object;
//! - a list in YAML ends with an error if the text of an object is too long;
//! - a list in protobuf keeps all its messages in memory, because its first bytes contain the total length;
//! - the [`ResponseBudget`] limits the total memory of the lists that clients have not finished reading.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use kube_informer_protobuf::Envelope;
use serde_json::{Value, json};

use super::Page;
use crate::body::{Body, BoxError, CHUNK_BYTES, next_piece};
use crate::clock::Clock;
use crate::go_json::to_text;
use crate::negotiate::{Encoding, Format, Representation};
use crate::protobuf::{ListMeta, Schema, item_head};
use crate::reply::too_long;
use crate::resource::Resource;
use crate::response_budget::ResponseBudget;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::table::Table;
use crate::typed::Ordered;
use crate::yaml::{self, TooLong};

/// Number of objects encoded as protobuf before the task yields.
const OBJECTS_PER_TURN: usize = 64;

/// Iterator over the chunks of one list's body.
struct Chunks {
    head: Option<Vec<u8>>,
    items: Items,
    tail: Option<Vec<u8>>,
    /// The part of a long chunk that has not been returned yet.
    rest: Bytes,
    /// Whether the text of an object was too long.
    failed: bool,
}

/// The objects of a list that have not been written yet.
enum Items {
    Json(JsonItems),
    Yaml(JsonItems),
    /// The protobuf message of each object.
    Protobuf(std::vec::IntoIter<Vec<u8>>),
}

struct JsonItems {
    entries: std::vec::IntoIter<Arc<Entry>>,
    resource: Arc<Resource>,
    representation: Representation,
    table: Table,
    /// Whether no object has been written yet.
    first: bool,
}

impl Chunks {
    /// Returns `chunk`. If `chunk` is longer than twice [`CHUNK_BYTES`], returns only its start and stores
    /// the rest.
    fn begin(&mut self, chunk: Vec<u8>) -> Bytes {
        if chunk.len() <= 2 * CHUNK_BYTES {
            return chunk.into();
        }
        self.rest = chunk.into();
        next_piece(&mut self.rest)
    }
}

/// Returns the response body of a list page as YAML, or as JSON for any other encoding, with memory reserved in
/// `budget`.
///
/// # Errors
///
/// Returns a 429 error if the budget has too little free memory.
pub(crate) fn write(
    budget: &Arc<ResponseBudget>,
    resource: &Arc<Resource>,
    page: Page,
    format: Format,
    clock: Clock,
) -> Result<Body, ApiError> {
    let table = Table::new(resource, clock);
    let (mut head, mut tail) = envelope(resource, &page, format.representation, &table);
    let slots = ResponseBudget::slots(page.entries.iter());
    let is_yaml = format.encoding == Encoding::Yaml;
    if is_yaml {
        (head, tail) = yaml_envelope(&head, &tail, page.entries.is_empty());
    }
    let items = JsonItems {
        entries: page.entries.into_iter(),
        resource: Arc::clone(resource),
        representation: format.representation,
        table,
        first: true,
    };
    let items = if is_yaml {
        Items::Yaml(items)
    } else {
        Items::Json(items)
    };
    stream_of(budget, slots, head, items, tail)
}

/// Returns the response body of a list page as protobuf, with memory reserved in `budget`.
///
/// Returns `None` if an object of the page does not fit the schema.
///
/// # Errors
///
/// Returns a 429 error if the budget has too little free memory.
///
/// # Cancel safety
///
/// Dropping the future has no effect on the server.
pub(crate) async fn write_protobuf(
    budget: &Arc<ResponseBudget>,
    schema: &Schema,
    resource: &Resource,
    page: &Page,
    representation: Representation,
) -> Result<Option<Body>, ApiError> {
    let mut messages = Vec::with_capacity(page.entries.len());
    let mut json = Vec::new();
    for (at, entry) in page.entries.iter().enumerate() {
        if at % OBJECTS_PER_TURN == OBJECTS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        json.clear();
        let view = entry.viewed(resource);
        let entry = view.as_ref().unwrap_or(entry);
        match representation {
            Representation::Metadata => entry.write_metadata_item(&mut json),
            _ => entry.write_item(&mut json),
        }
        match schema.item(&json) {
            Some(message) => messages.push(message),
            None => return Ok(None),
        }
    }
    let metadata = ListMeta {
        revision: page.revision,
        continue_token: page.continue_token.as_deref(),
        remaining: page.remaining,
    };
    let head = schema.list_head(&metadata, messages.iter().map(Vec::len));
    let slots = messages.iter().map(Vec::capacity).sum::<usize>() / ResponseBudget::SLOT_BYTES;
    let items = Items::Protobuf(messages.into_iter());
    stream_of(budget, slots, head, items, Envelope::END.to_vec()).map(Some)
}

fn stream_of(
    budget: &Arc<ResponseBudget>,
    slots: usize,
    head: Vec<u8>,
    items: Items,
    tail: Vec<u8>,
) -> Result<Body, ApiError> {
    let chunks = Chunks {
        head: Some(head),
        items,
        tail: Some(tail),
        rest: Bytes::new(),
        failed: false,
    };
    let content = budget.hold(slots, chunks)?;
    let next = move || match content.with(Iterator::next) {
        Ok(chunk) => chunk.transpose().map_err(BoxError::from),
        Err(evicted) => Err(BoxError::from(evicted)),
    };
    let chunks = std::iter::from_fn(move || next().transpose());
    Ok(Body::stream(stream::iter(chunks)))
}

impl Iterator for Chunks {
    type Item = Result<Bytes, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.rest.is_empty() {
            return Some(Ok(next_piece(&mut self.rest)));
        }
        if self.failed {
            return None;
        }
        let mut chunk = match self.head.take() {
            Some(head) => head,
            None if self.tail.is_some() => Vec::with_capacity(CHUNK_BYTES),
            None => return None,
        };
        while chunk.len() < CHUNK_BYTES {
            match self.items.write_next(&mut chunk) {
                Ok(true) => {}
                Ok(false) => {
                    chunk.extend(self.tail.take().into_iter().flatten());
                    break;
                }
                Err(TooLong) => {
                    self.failed = true;
                    return Some(Err(too_long()));
                }
            }
        }
        Some(Ok(self.begin(chunk)))
    }
}

impl Items {
    /// Appends the next object to `out`, or returns false if no object is left.
    fn write_next(&mut self, out: &mut Vec<u8>) -> Result<bool, TooLong> {
        match self {
            Items::Json(items) => Ok(items.write_next(out)),
            Items::Yaml(items) => items.write_next_as_yaml(out),
            Items::Protobuf(messages) => {
                let Some(message) = messages.next() else {
                    return Ok(false);
                };
                item_head(message.len(), out);
                out.extend_from_slice(&message);
                Ok(true)
            }
        }
    }
}

impl JsonItems {
    /// Appends the next object to `out` as YAML, or returns false if no object is left.
    fn write_next_as_yaml(&mut self, out: &mut Vec<u8>) -> Result<bool, TooLong> {
        let mut json = Vec::new();
        self.first = true;
        if !self.write_next(&mut json) {
            return Ok(false);
        }
        // A row of a table has one level more than its object, which can be too many for the parser.
        let item = serde_json::from_slice(&json).map_err(|_| TooLong)?;
        let mut text = String::new();
        yaml::append_item(&mut text, &item)?;
        out.extend_from_slice(text.as_bytes());
        Ok(true)
    }

    /// Appends the next object to `out`, or returns false if no object is left.
    fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(entry) = self.entries.next() else {
            return false;
        };
        if !std::mem::take(&mut self.first) {
            out.push(b',');
        }
        if let Representation::Table(include) = self.representation {
            self.table.write_row(&entry, include, out);
            return true;
        }
        let view = entry.viewed(&self.resource);
        let entry = view.as_ref().unwrap_or(&entry);
        match self.representation {
            Representation::Metadata => entry.write_metadata(&self.resource, out),
            Representation::Object if self.resource.kind.custom => {
                entry.write_object(&self.resource, out);
            }
            _ => entry.write_item(out),
        }
        true
    }
}

/// Returns the YAML of a list body before and after the items, from its JSON.
fn yaml_envelope(head: &[u8], tail: &[u8], is_empty: bool) -> (Vec<u8>, Vec<u8>) {
    let list = serde_json::from_slice(&[head, tail].concat()).expect("an empty list is JSON");
    let text = yaml::to_text(&list).expect("a list without items is short");
    // Members of the list itself are not indented, so the text contains one such line.
    let items = ["\nitems: []\n", "\nrows: []\n"];
    let items = items
        .into_iter()
        .find_map(|items| Some((text.find(items)?, items)));
    let (start, items) = items.expect("a list has items");
    let end = start + items.len();
    let kept = if is_empty {
        items.len()
    } else {
        items.len() - " []\n".len()
    };
    let mut head = text[..start + kept].to_owned();
    if !is_empty {
        head.push('\n');
    }
    (head.into_bytes(), text[end..].into())
}

/// Returns the JSON of a list body before and after the items.
fn envelope(
    resource: &Resource,
    page: &Page,
    representation: Representation,
    table: &Table,
) -> (Vec<u8>, Vec<u8>) {
    let mut members = list_metadata(page);
    let metadata = to_text(&Ordered::document(&members));
    let (head, tail) = match representation {
        Representation::Object => {
            let api_version = json!(resource.kind.api_version());
            let kind = json!(resource.kind.list_kind);
            if resource.kind.custom {
                // Only lists of custom kinds always have this member.
                if page.continue_token.is_none() {
                    members["continue"] = json!("");
                }
                let metadata = to_text(&members);
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
            let columns = to_text(&Ordered::document(&table.columns()));
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
