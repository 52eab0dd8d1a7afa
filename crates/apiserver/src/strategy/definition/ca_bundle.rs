//! Checks the CA bundle of a conversion webhook, and the certificate and key of a secret.
//!
//! Guarantees: the messages are those of `ValidateCABundle` in Kubernetes. A bundle with a certificate that
//! Kubernetes accepts is accepted.
//!
//! The module checks only the outer structure of a certificate, so it accepts certificates that Kubernetes
//! rejects because of their content.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

const BEGIN: &[u8] = b"-----BEGIN ";
/// The start of the last line of a block, with the line break before it.
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

/// Base64 as Go decodes it: the unused bits of the last character can be set.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Tag of a DER sequence.
const SEQUENCE: u8 = 0x30;
/// Tag of a DER bit string.
const BIT_STRING: u8 = 0x03;

/// A block of a PEM file.
struct Block {
    kind: String,
    is_plain_certificate: bool,
    content: Vec<u8>,
}

/// Returns why a bundle that is not empty contains no certificate, or `None` if it contains one.
pub(super) fn fault(bundle: &[u8]) -> Option<String> {
    let mut blocks = Blocks(bundle);
    let has_certificate = blocks
        .by_ref()
        .any(|block| block.is_plain_certificate && certificate_fault(&block.content).is_none());
    if has_certificate {
        return None;
    }
    let mut blocks = Blocks(bundle);
    let bad = blocks.by_ref().find(|block| block.is_plain_certificate);
    let why = match bad.and_then(|block| certificate_fault(&block.content)) {
        Some(why) => format!("failed to parse certificate: x509: {why}"),
        None if blocks.0.is_empty() => "no valid certificate authority data seen".to_owned(),
        None => "unable to parse bytes as PEM block".to_owned(),
    };
    Some(format!("unable to load root certificates: {why}"))
}

/// Returns why a certificate and a key in PEM are no pair, as far as their blocks show it (Go's `tls.X509KeyPair`).
pub(in crate::strategy) fn key_pair_fault(certificate: &[u8], key: &[u8]) -> Option<String> {
    let kinds = |text| {
        Blocks(text)
            .map(|block| block.kind)
            .collect::<Vec<String>>()
    };
    let (certificate, key) = (kinds(certificate), kinds(key));
    let is_key = |kind: &String| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY");
    let is_certificate = |kind: &String| kind == "CERTIFICATE";
    let why = if certificate.is_empty() {
        "failed to find any PEM data in certificate input".to_owned()
    } else if !certificate.iter().any(is_certificate) {
        match &certificate[..] {
            [only] if only.ends_with("PRIVATE KEY") => "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
            kinds => format!("failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]", kinds.join(" ")),
        }
    } else if key.is_empty() {
        "failed to find any PEM data in key input".to_owned()
    } else if !key.iter().any(is_key) {
        match &key[..] {
            [only] if is_certificate(only) => {
                "found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            kinds => format!(
                "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                kinds.join(" ")
            ),
        }
    } else {
        return None;
    };
    Some(format!("tls: {why}"))
}

/// Decodes base64 as Go does. Line breaks are ignored.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut text = text.to_vec();
    text.retain(|byte| !matches!(byte, b'\n' | b'\r'));
    BASE64.decode(text).ok()
}

/// The PEM blocks of a text. Contains the text after the last block.
///
/// Finds the same blocks as Go's `pem.Decode`, in linear time.
struct Blocks<'a>(&'a [u8]);

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let text = self.0;
        let mut start = 0;
        loop {
            let end = start + find(&text[start..], END)?;
            let trailer = end + END.len();
            // The last first line before the end, so that a first line without an end is skipped.
            let begin = rfind(&text[start..end], BEGIN).map(|at| start + at);
            let begin = begin.filter(|at| *at == start || text[at - 1] == b'\n');
            start = trailer;
            let Some(body) = begin.map(|at| at + BEGIN.len()) else {
                continue;
            };
            let (kind, below) = split_line(&text[body..]);
            let Some(kind) = kind.strip_suffix(DASHES) else {
                continue;
            };
            let (has_headers, below) = skip_headers(below)?;
            let body = text.len() - below.len();
            if has_headers && body > end {
                if body > trailer {
                    return None;
                }
                continue;
            }
            let (last, after) = split_line(&text[trailer..]);
            if last.strip_suffix(DASHES) != Some(kind) {
                continue;
            }
            let mut content = text.get(body..end).unwrap_or_default().to_vec();
            content.retain(|byte| !matches!(byte, b' ' | b'\t'));
            let Some(content) = decode(&content) else {
                continue;
            };
            self.0 = after;
            return Some(Block {
                kind: String::from_utf8_lossy(kind).into_owned(),
                is_plain_certificate: kind == b"CERTIFICATE" && !has_headers,
                content,
            });
        }
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|found| found == part)
}

fn rfind(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).rposition(|found| found == part)
}

/// Returns the first line without spaces at its end, and the text after it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n');
    let (mut line, rest) = match end {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[][..]),
    };
    if end.is_some() {
        line = line.strip_suffix(b"\r").unwrap_or(line);
    }
    while let Some(shorter) = line.strip_suffix(b" ").or_else(|| line.strip_suffix(b"\t")) {
        line = shorter;
    }
    (line, rest)
}

/// Returns whether a block has headers, and the text after them. Returns `None` if no text follows.
fn skip_headers(text: &[u8]) -> Option<(bool, &[u8])> {
    let (mut has_headers, mut rest) = (false, text);
    while !rest.is_empty() {
        let (line, below) = split_line(rest);
        if !line.contains(&b':') {
            return Some((has_headers, rest));
        }
        (has_headers, rest) = (true, below);
    }
    None
}

/// Returns why bytes are not a certificate, or `None` if they have its outer structure.
fn certificate_fault(bytes: &[u8]) -> Option<&'static str> {
    let Some((certificate, rest)) = read(bytes, SEQUENCE) else {
        return Some("malformed certificate");
    };
    if !rest.is_empty() {
        return Some("trailing data");
    }
    let Some((_, rest)) = read(certificate, SEQUENCE) else {
        return Some("malformed tbs certificate");
    };
    let Some((_, rest)) = read(rest, SEQUENCE) else {
        return Some("malformed algorithm identifier");
    };
    match read(rest, BIT_STRING) {
        Some(_) => None,
        None => Some("malformed signature"),
    }
}

/// Returns the content of a DER value with a tag, and the bytes after it.
fn read(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *found != tag {
        return None;
    }
    if *length < 0x80 {
        return rest.split_at_checked(usize::from(*length));
    }
    let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
    if !(1..=4).contains(&digits.len()) {
        return None;
    }
    let length = digits
        .iter()
        .fold(0, |length, digit| length << 8 | usize::from(*digit));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_needs_one_certificate() {
        let pem = |kind: &str, content: &[u8]| {
            let text = BASE64.encode(content);
            format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
        };
        // A certificate in outline: two sequences and a bit string in a sequence.
        let good = pem("CERTIFICATE", &[0x30, 6, 0x30, 0, 0x30, 0, 0x03, 0]);
        let bad = pem("CERTIFICATE", b"x");
        let key = pem("KEY", b"x");
        let lead = "unable to load root certificates: ";
        for (bundle, expected) in [
            (good.clone(), ""),
            (format!("text\n{bad}{key}{good}"), ""),
            ("x".to_owned(), "unable to parse bytes as PEM block"),
            (key.clone(), "no valid certificate authority data seen"),
            (format!("{key}x"), "unable to parse bytes as PEM block"),
            (
                bad,
                "failed to parse certificate: x509: malformed certificate",
            ),
        ] {
            let found = fault(bundle.as_bytes()).unwrap_or_default();
            assert_eq!(
                found.strip_prefix(lead).unwrap_or(&found),
                expected,
                "{bundle}"
            );
        }
    }
}
