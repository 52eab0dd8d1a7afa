//! Reads and writes the text format of a saved store: JSON lines for the header, for each object, and for the
//! end.
//!
//! ```text
//! {"format":1,"saved":1767225600,"version":"1.4.0","kind":"v1 Pod","server":"…","sources":[{"collection":"/api/v1/pods","revision":"7"}]}
//! {"source":0,"namespace":"default","name":"a","revision":"3","object":{…}}
//! {"end":{"objects":1,"checksum":"…"}}
//! ```
//!
//! Guarantees: in addition to the objects, the writer and the reader keep only one line in memory. The length
//! of a line, the number of objects and the size of the file are limited. A damaged file can therefore use
//! only limited memory. For any file, the reader returns the objects or an error. The reader returns objects
//! only if the checksum in the last line matches.
//!
//! The checksum detects accidental damage. It does not detect changes by an attacker who can write to the
//! file.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, BufRead, BufWriter, Read, Write},
};

use kube_core::Resource;
use memchr::memchr;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    codec::{Codec, Identity, IdentityMetadata},
    decode::Decoder,
    limits::{PARTS, SAVED_FILE_BYTES, SAVED_LINE_BYTES, SAVED_OBJECTS, one_line},
    object::{DecodeError, Object, ObjectName, ResourceVersion, SourceId},
    pruning::{Storable, Stored},
    status::ColdReason,
};

/// Version of the file format.
pub(super) const FORMAT: u64 = 1;

/// Limits for both writing and reading one saved store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line_bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) objects: usize,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self {
        line_bytes: SAVED_LINE_BYTES,
        file_bytes: SAVED_FILE_BYTES,
        objects: SAVED_OBJECTS,
    };
}

/// Number of JSON objects and arrays in a line, without those of the Kubernetes object.
///
/// A line has at most [`PARTS`] plus this number of JSON objects and arrays.
const RECORD_PARTS: usize = 1;

/// Prefix of the last line, and of no other line.
const END: &[u8] = br#"{"end":"#;

/// Maximum bytes that an error message quotes from a saved store.
const SAID_BYTES: usize = 256;

/// The first line of a saved store, with the properties that must match the informer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: u64,
    /// Time of the save, in seconds since 1970 (Unix time).
    pub(super) saved: u64,
    pub(super) version: String,
    pub(super) kind: String,
    /// The fields that pruning removes from objects, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) pruned: String,
    pub(super) server: String,
    pub(super) sources: Vec<SavedSource>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSource {
    pub(super) collection: String,
    pub(super) revision: String,
}

/// The format version. It is parsed first, because other versions may have other headers.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

#[derive(Serialize)]
#[serde(bound = "K: Storable")]
struct RecordRef<'a, K> {
    source: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<SavedBody<'a, K>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Broken>,
}

/// The JSON of an object in a saved store: serialized from the decoded object, or copied from the cache.
#[derive(Serialize)]
#[serde(untagged, bound = "K: Storable")]
enum SavedBody<'a, K> {
    Decoded(Stored<'a, K>),
    Json(&'a RawValue),
}

#[derive(Deserialize)]
struct Record<'a> {
    source: u32,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    revision: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    broken: Option<Broken>,
}

/// Replaces the JSON of an object that failed to decode.
#[derive(Serialize, Deserialize)]
struct Broken {
    uid: String,
    labels: BTreeMap<String, String>,
    field: String,
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct Trailer {
    end: End,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    objects: usize,
    checksum: String,
}

/// A 64-bit FNV-1a checksum, which detects every change of a single byte.
pub(super) struct Checksum(u64);

impl Checksum {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The reason why [`Writer`] did not write a line.
#[derive(Debug)]
pub(super) enum WriteError {
    Io(io::Error),
    /// The `Serialize` of the object type returned an error.
    Encode,
    /// The line, the file or the number of objects would exceed [`Limits`].
    TooLarge,
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a saved store: the header, one line for each object, and the last line.
pub(super) struct Writer<W: Write> {
    limits: Limits,
    out: BufWriter<W>,
    line: Vec<u8>,
    checksum: Checksum,
    objects: usize,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, header: &Header, limits: Limits) -> Result<Self, WriteError> {
        let mut writer = Self {
            limits,
            out: BufWriter::with_capacity(64 << 10, out),
            line: Vec::new(),
            checksum: Checksum::new(),
            objects: 0,
            bytes: 0,
        };
        writer.line(header)?;
        Ok(writer)
    }

    pub(super) fn object<K>(
        &mut self,
        source: SourceId,
        object: &Object<K>,
    ) -> Result<(), WriteError>
    where
        K: kube_core::Resource + Storable,
    {
        if self.objects == self.limits.objects {
            return Err(WriteError::TooLarge);
        }
        let as_it_is =
            object.with_encoded(|encoded| self.json_record(source, object, &encoded.json()));
        match as_it_is.flatten() {
            Some(written) => written?,
            None => self.decoded_record(source, object)?,
        }
        self.objects += 1;
        Ok(())
    }

    /// Writes the line of an object with its JSON from the cache.
    ///
    /// Returns `None` and writes nothing for invalid JSON, which would make the file unreadable.
    fn json_record<K>(
        &mut self,
        source: SourceId,
        object: &Object<K>,
        json: &[u8],
    ) -> Option<Result<(), WriteError>>
    where
        K: kube_core::Resource + Storable,
    {
        let is_one_line = memchr(b'\n', json).is_none();
        let json = if is_one_line {
            Cow::Borrowed(json)
        } else {
            // A line break in a JSON string is escaped, so these bytes are whitespace.
            let spaced = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
            Cow::Owned(json.iter().map(spaced).collect())
        };
        let json = serde_json::from_slice(&json).ok()?;
        Some(self.record(source, object, Some(SavedBody::Json(json)), None))
    }

    /// Writes the line of an object with its serialized value or its decode error.
    fn decoded_record<K>(&mut self, source: SourceId, object: &Object<K>) -> Result<(), WriteError>
    where
        K: kube_core::Resource + Storable,
    {
        let whole = object.peek();
        let broken = whole.as_ref().err().map(|error| Broken {
            uid: object.uid().to_owned(),
            labels: object
                .labels()
                .iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            field: error.field().to_owned(),
            reason: error.reason().to_owned(),
        });
        let body = whole.as_deref().ok().map(Stored);
        self.record(source, object, body.map(SavedBody::Decoded), broken)
    }

    fn record<K: Storable>(
        &mut self,
        source: SourceId,
        object: &Object<K>,
        body: Option<SavedBody<'_, K>>,
        broken: Option<Broken>,
    ) -> Result<(), WriteError> {
        self.line(&RecordRef {
            source: source.number(),
            namespace: object.namespace(),
            name: object.name(),
            revision: object.revision().to_string(),
            object: body,
            broken,
        })
    }

    /// Writes the last line, and returns the number of objects, the size in bytes and the output.
    pub(super) fn finish(mut self) -> Result<(usize, u64, W), WriteError> {
        let end = End {
            objects: self.objects,
            checksum: self.checksum.text(),
        };
        self.line(&Trailer { end })?;
        let out = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok((self.objects, self.bytes, out))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), WriteError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value).map_err(|_| WriteError::Encode)?;
        self.line.push(b'\n');
        let length = self.line.len() as u64;
        self.bytes += length;
        if length > self.limits.line_bytes || self.bytes > self.limits.file_bytes {
            return Err(WriteError::TooLarge);
        }
        self.checksum.add(&self.line);
        self.out.write_all(&self.line)?;
        Ok(())
    }
}

/// Reads a saved store: first the header with [`new`](Self::new), then the objects with
/// [`objects`](Self::objects).
pub(super) struct Reader<R> {
    limits: Limits,
    input: R,
    line: Vec<u8>,
    number: usize,
    checksum: Checksum,
}

impl<R: BufRead> Reader<R> {
    /// Returns the header and a reader of the other lines, or the reason for a cold start.
    pub(super) fn new(input: R, limits: Limits) -> Result<(Header, Self), ColdReason> {
        let mut reader = Self {
            limits,
            input,
            line: Vec::new(),
            number: 0,
            checksum: Checksum::new(),
        };
        reader.next()?;
        let Format { format } = reader.parse()?;
        if format != FORMAT {
            return Err(ColdReason::OtherFormat(format));
        }
        let header = reader.parse()?;
        Ok((header, reader))
    }

    /// Reads the objects of each source, and the last line.
    ///
    /// Calls `wanted` before each object. If `wanted` returns `false`, the method returns an error.
    pub(super) fn objects<K: Resource + DeserializeOwned>(
        mut self,
        sources: usize,
        decoder: &Decoder<K>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<Object<K>>>, ColdReason> {
        let mut lists: Vec<Vec<Object<K>>> =
            std::iter::repeat_with(Vec::new).take(sources).collect();
        let mut objects = 0;
        loop {
            let before = self.checksum.text();
            self.next()?;
            if self.line.starts_with(END) {
                self.end(before, objects)?;
                decoder.form().keep_house(&lists, false);
                return Ok(lists);
            }
            if objects == self.limits.objects {
                return Err(damaged(format!("it has more than {objects} objects")));
            }
            if !wanted() {
                return Err(ColdReason::Unreadable("the load was cancelled".to_owned()));
            }
            let (source, object) = self.record(decoder)?;
            let list = lists.get_mut(source as usize);
            list.ok_or_else(|| self.unfit())?.push(object);
            decoder.form().keep_house(&lists, true);
            objects += 1;
        }
    }

    fn record<K: Resource + DeserializeOwned>(
        &self,
        decoder: &Decoder<K>,
    ) -> Result<(u32, Object<K>), ColdReason> {
        // The same limit as for objects from a server, plus the parts of the record.
        if self.line.len() > PARTS && Codec::Json.object(&self.line).parts() > PARTS + RECORD_PARTS
        {
            return Err(self.unfit());
        }
        let record: Record<'_> = self.parse()?;
        if record.name.is_empty() {
            return Err(self.unfit());
        }
        let namespace = record.namespace.as_deref();
        let name = ObjectName::new(namespace, &record.name);
        if !name.is_fit() || !ResourceVersion::is_fit(&record.revision) {
            return Err(self.unfit());
        }
        let object = match (record.object, record.broken) {
            (Some(json), None) => {
                let json = Codec::Json.object(json.get().as_bytes());
                let restored = decoder.restored(name, &record.revision, json, self.line.len());
                restored.ok_or_else(|| self.unfit())?
            }
            (None, Some(broken)) => {
                let error = DecodeError::new(Some(name.clone()), &broken.field, &broken.reason);
                let metadata = IdentityMetadata {
                    uid: broken.uid.into(),
                    resource_version: record.revision,
                    labels: broken.labels.into_iter().collect(),
                    ..IdentityMetadata::default()
                };
                Object::from_broken(name, &Identity { metadata }, error)
            }
            _ => return Err(self.unfit()),
        };
        Ok((record.source, object))
    }

    /// Checks that the current line is the last one, and contains `checksum` and the number `objects`.
    fn end(&mut self, checksum: String, objects: usize) -> Result<(), ColdReason> {
        let Trailer { end } = self.parse()?;
        if end != (End { objects, checksum }) {
            return Err(damaged("its checksum is wrong"));
        }
        let mut more = [0];
        match self.input.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(damaged("it has data after its end")),
            Err(error) => Err(ColdReason::Unreadable(error.to_string())),
        }
    }

    fn next(&mut self) -> Result<(), ColdReason> {
        self.line.clear();
        self.number += 1;
        let mut limited = (&mut self.input).take(self.limits.line_bytes);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(|error| ColdReason::Unreadable(error.to_string()))?;
        if self.line.last() != Some(&b'\n') {
            let what = if self.line.len() as u64 == self.limits.line_bytes {
                "is longer than any object"
            } else {
                "is cut off"
            };
            return Err(damaged(format!("line {} {what}", self.number)));
        }
        self.checksum.add(&self.line);
        Ok(())
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ColdReason> {
        serde_json::from_slice(&self.line).map_err(|_| self.unfit())
    }

    /// Returns the error for unexpected content in the current line.
    ///
    /// The error contains only the line number, because the line may contain a Secret.
    fn unfit(&self) -> ColdReason {
        damaged(format!("line {} has unexpected content", self.number))
    }
}

pub(super) fn damaged(what: impl Into<String>) -> ColdReason {
    ColdReason::Damaged(what.into())
}

/// Shortens `text` to one line, for an error message.
pub(super) fn said(text: &str) -> String {
    one_line(text, SAID_BYTES)
}

#[cfg(test)]
mod tests;
