//! Reads HTTP responses, with their chunk boundaries, from recorded files and from running servers.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

pub(crate) struct Wire {
    pub(crate) protocol: Protocol,
    /// Header lines in lower case, without `Date` and `Connection: close`. For HTTP/2, the set is empty.
    pub(crate) headers: BTreeSet<String>,
    /// The body, split into the chunks of HTTP/1.1 or the DATA frames of HTTP/2.
    pub(crate) chunks: Vec<Vec<u8>>,
}

impl Wire {
    /// Reads the recorded response `name` from `captures/`.
    pub(crate) fn captured(name: &str) -> Wire {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/captures");
        let file = std::fs::File::open(folder.join(format!("{name}.http.gz"))).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        Wire::parse(&bytes)
    }

    /// Sends a GET request over HTTP/1.1, and returns the complete response.
    pub(crate) async fn ask(uri: &str, path: &str, accept: &str) -> Wire {
        let address = uri.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Wire::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Wire {
        let end = find(bytes, b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let protocol = match lines.next() {
            Some("HTTP/1.1 200 OK") => Protocol::Http1,
            Some("HTTP/2 200 OK") => Protocol::Http2,
            other => panic!("{other:?}"),
        };
        let headers = lines.map(str::to_lowercase);
        let headers =
            headers.filter(|line| !line.starts_with("date") && line != "connection: close");
        let mut wire = Wire {
            protocol,
            headers: headers.filter(|_| protocol == Protocol::Http1).collect(),
            chunks: Vec::new(),
        };
        let mut rest = &bytes[end + 4..];
        while let Some(line) = find(rest, b"\r\n") {
            let length = std::str::from_utf8(&rest[..line]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            if length == 0 {
                break;
            }
            let start = line + 2;
            wire.chunks.push(rest[start..start + length].to_vec());
            rest = &rest[start + length + 2..];
        }
        wire
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}
