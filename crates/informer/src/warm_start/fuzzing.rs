//! Decodes and encodes saved stores for the fuzz targets. A saved store is the file that a warm start loads.
//!
//! This module processes the file's text in memory and accesses no file.

use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};

use super::format::{Checksum, FORMAT, Header, Limits, Reader, SavedSource, WriteError, Writer};
use crate::{
    decode::Decoder,
    object::{Object, SourceId},
    status::ColdReason,
};

/// Limits of a saved store, low enough that fuzz inputs can exceed them.
const LIMITS: Limits = Limits {
    line_bytes: 4096,
    file_bytes: 64 << 10,
    objects: 16,
};

/// Returns the objects in the text of a saved store, in one list per source.
pub(crate) fn load<K>(text: &[u8]) -> Result<Vec<Vec<Object<K>>>, ColdReason>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    let (header, reader) = Reader::new(text, LIMITS)?;
    let decoder = Decoder::new(&(), None);
    reader.objects(header.sources.len(), &decoder, &|| true)
}

/// Returns the text of a saved store. `sources` contains one list of objects per source.
pub(crate) fn save<K: Resource + Serialize>(sources: &[Vec<Object<K>>]) -> Option<Vec<u8>> {
    written(sources).ok()
}

fn written<K: Resource + Serialize>(sources: &[Vec<Object<K>>]) -> Result<Vec<u8>, WriteError> {
    let source = |_: &Vec<Object<K>>| SavedSource {
        collection: "objects".to_owned(),
        revision: "1".to_owned(),
    };
    let header = Header {
        format: FORMAT,
        saved: 1,
        version: "1".to_owned(),
        kind: "v1 ConfigMap".to_owned(),
        pruned: String::new(),
        server: "s".to_owned(),
        sources: sources.iter().map(source).collect(),
    };
    let mut writer = Writer::new(Vec::new(), &header, LIMITS)?;
    for (number, objects) in (0..).zip(sources) {
        for object in objects {
            writer.object(SourceId::new(number), object)?;
        }
    }
    writer.finish().map(|(_, _, text)| text)
}

/// Returns the last line of a saved store. `lines` are all earlier lines.
pub(crate) fn end(lines: &[u8]) -> String {
    let mut checksum = Checksum::new();
    checksum.add(lines);
    let objects = lines.split(|byte| *byte == b'\n').count().saturating_sub(2);
    let checksum = checksum.text();
    format!("{{\"end\":{{\"objects\":{objects},\"checksum\":\"{checksum}\"}}}}\n")
}
