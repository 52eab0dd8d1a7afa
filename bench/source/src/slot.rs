//! Computes the values that differ between the generated objects of one template.
//!
//! A template contains the bytes that all of its objects share. A [`Slot`] is a value that differs between
//! these objects, for example the UUID. Each slot has its own placeholder. The template contains this
//! placeholder wherever an object contains the value of the slot.
//!
//! Guarantees:
//! - a value is computed from the object's [`Identity`] and the slot, so no value is kept in memory;
//! - the JSON and the protobuf of an object contain the same value of each slot;
//! - all values of a slot have the same width. In one encoding, all objects of a template therefore have the
//!   same length.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use jiff::Timestamp;

/// The characters that Kubernetes uses in generated names, in byte order.
pub(crate) const LETTERS: &[u8; 27] = b"2456789bcdfghjklmnpqrstvwxz";

/// Number of possible name suffixes, which are five characters of [`LETTERS`].
pub(crate) const SUFFIXES: u64 = 27 * 27 * 27 * 27 * 27;

/// Number of digits of an object's `resourceVersion`.
pub(crate) const REVISION_WIDTH: usize = 10;

/// Number of digits of a time from 2001 to 2286, in nanoseconds since 1970.
pub(crate) const STAMP_WIDTH: usize = 19;

/// Latest possible creation time of a generated object, in seconds since 1970: 2026-06-01T00:00:00Z.
///
/// The time is constant, so the same seed always results in the same objects.
const NEWEST: i64 = 1_780_272_000;

/// Maximum time from the creation of an object to [`NEWEST`], in seconds (90 days).
const AGE_MAX: u64 = 90 * 24 * 3600;

/// Time in a template that marks the place of a [`Slot::Time`], in seconds since 1970.
///
/// The slot with index `i` in [`Slots`] has the mark `MARKED_SECOND + i`. All other times in a template are
/// earlier.
const MARKED_SECOND: i64 = 2_000_000_000;

/// The encoding of an object in lists and watch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, supported for all kinds.
    Json,
    /// Protobuf, supported only for built-in kinds.
    Protobuf,
}

/// A value that differs between the objects of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A random UUID.
    Uid,
    /// The last five characters of the object's name. Of two objects of a template, the object with the
    /// greater index has the suffix that is greater in byte order.
    Suffix,
    /// Five random characters of [`LETTERS`].
    Letters,
    /// The last three of the four numbers of the pod's IP address.
    Address,
    /// The last three numbers of the node's IP address, separated by dashes.
    Node,
    /// The last three of the four numbers of the node's IP address.
    NodeAddress,
    /// A time. The field is the number of seconds from the object's creation to this time.
    Time(u8),
    /// Random hexadecimal digits. The first field is a number that is different in each `Hex` slot of a
    /// template. The second field is the number of digits.
    Hex(u8, usize),
    /// Random bytes, which JSON contains as base64. The first field is a number that is different in each
    /// `Data` slot of a template. The second field is the number of bytes.
    ///
    /// The number of bytes is a multiple of three, so the base64 text has no padding.
    Data(u8, usize),
    /// The object's `resourceVersion`.
    Revision,
    /// Time of the object's last change, in nanoseconds since 1970. All digits are 0 until the first change.
    Stamp,
}

/// All slots of a template. The index of a slot determines its placeholder in the template.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<Slot>);

/// The input from which an object's slot values are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Seed of the object's random values.
    pub(crate) seed: u64,
    /// Number from which the suffix of the object's name is generated; less than [`SUFFIXES`].
    pub(crate) suffix: u64,
    /// Number of nodes in the generated cluster.
    pub(crate) nodes: u32,
    pub(crate) revision: u64,
    pub(crate) stamp: u64,
}

// === impl Slots ===

impl Slots {
    /// Adds `slot` to the slots of the template, unless they already contain it.
    ///
    /// Returns the placeholder of `slot` in JSON.
    pub(crate) fn mark(&mut self, slot: Slot) -> String {
        let at = self.place(slot);
        slot.mark(at, Encoding::Json)
    }

    fn place(&mut self, slot: Slot) -> usize {
        let found = self.0.iter().position(|known| *known == slot);
        found.unwrap_or_else(|| {
            self.0.push(slot);
            self.0.len() - 1
        })
    }

    /// Returns all slots with their placeholders in `encoding`.
    pub(crate) fn marks(&self, encoding: Encoding) -> impl Iterator<Item = (Slot, Vec<u8>)> {
        let slots = self.0.iter().copied().enumerate();
        slots.map(move |(at, slot)| match (slot, encoding) {
            (Slot::Time(_), Encoding::Protobuf) => (slot, varint(marked_second(at))),
            (Slot::Data(_, len), Encoding::Protobuf) => (slot, marked_bytes(at, len)),
            _ => (slot, slot.mark(at, encoding).into_bytes()),
        })
    }
}

/// Returns the placeholder of the slot with index `at`: one letter and then tildes.
///
/// A template contains tildes only in placeholders.
fn marked_bytes(at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![b'~'; len];
    let letter = u8::try_from(at).map_or(u8::MAX, |at| b'A' + at);
    bytes[..1].fill(letter);
    bytes
}

fn marked_second(at: usize) -> i64 {
    i64::try_from(at).map_or(i64::MAX, |at| MARKED_SECOND + at)
}

/// Returns the protobuf varint of a time in seconds since 1970.
///
/// The varint of a time between the years 1979 and 3058 has five bytes.
fn varint(second: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5);
    crate::protobuf::put_varint(&mut bytes, second.cast_unsigned());
    bytes
}

// === impl Slot ===

impl Slot {
    fn mark(self, at: usize, _: Encoding) -> String {
        match self {
            Slot::Time(_) => rfc3339(marked_second(at)),
            Slot::Data(_, len) => STANDARD.encode(marked_bytes(at, len)),
            _ => String::from_utf8_lossy(&marked_bytes(at, self.width())).into_owned(),
        }
    }

    /// Returns the length of this slot's value in bytes. The value has the same length in all objects.
    ///
    /// For [`Slot::Data`], this is the length of the random bytes. For all other slots, this is the length of
    /// the text in JSON.
    fn width(self) -> usize {
        match self {
            Slot::Uid => 36,
            Slot::Suffix | Slot::Letters => 5,
            Slot::Address | Slot::Node | Slot::NodeAddress => 11,
            Slot::Time(_) => 20,
            Slot::Hex(_, len) | Slot::Data(_, len) => len,
            Slot::Revision => REVISION_WIDTH,
            Slot::Stamp => STAMP_WIDTH,
        }
    }

    /// Replaces the content of `out` with the value of this slot for one object, in the given encoding.
    ///
    /// The parameter `of` identifies the object. In the object, the value replaces the slot's placeholder.
    pub(crate) fn write(self, of: &Identity, encoding: Encoding, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Slot::Uid => write_uid(&mut of.random(1), out),
            Slot::Suffix => write_letters(of.suffix, out),
            Slot::Letters => write_letters(of.random(2).u64(..SUFFIXES), out),
            Slot::Address => write_address(of.random(3).u32(..), b'.', out),
            Slot::Node => write_address(of.node(), b'-', out),
            Slot::NodeAddress => write_address(of.node(), b'.', out),
            Slot::Time(after) => {
                let second = of.created() + i64::from(after);
                match encoding {
                    Encoding::Json => out.extend_from_slice(rfc3339(second).as_bytes()),
                    Encoding::Protobuf => crate::protobuf::put_varint(out, second.cast_unsigned()),
                }
            }
            Slot::Hex(which, len) => write_hex(&mut of.random(0x100 + u64::from(which)), len, out),
            Slot::Data(which, len) => {
                let mut bytes = vec![0; len];
                of.random(0x200 + u64::from(which)).fill(&mut bytes);
                match encoding {
                    Encoding::Json => out.extend_from_slice(STANDARD.encode(&bytes).as_bytes()),
                    Encoding::Protobuf => out.append(&mut bytes),
                }
            }
            Slot::Revision => write_decimal(of.revision, REVISION_WIDTH, out),
            Slot::Stamp => write_decimal(of.stamp, STAMP_WIDTH, out),
        }
    }
}

fn rfc3339(second: i64) -> String {
    Timestamp::from_second(second)
        .expect("slots have seconds of this century")
        .to_string()
}

fn write_letters(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    for _ in 0..5 {
        let letter = usize::try_from(number % 27).expect("a remainder below 27 fits");
        out.push(LETTERS[letter]);
        number /= 27;
    }
    out[start..].reverse();
}

/// Appends the last three numbers of an IP address to `out`, separated by `between`.
///
/// The three numbers are computed from `number`. Each has three digits.
fn write_address(mut number: u32, between: u8, out: &mut Vec<u8>) {
    for at in 0..3 {
        if at > 0 {
            out.push(between);
        }
        write_decimal(u64::from(100 + number % 155), 3, out);
        number /= 155;
    }
}

fn write_decimal(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
    }
}

fn write_hex(rng: &mut Rng, len: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut random = 0;
    for at in 0..len {
        if at % 16 == 0 {
            random = rng.u64(..);
        }
        out.push(DIGITS[usize::from(random.to_le_bytes()[0] & 15)]);
        random >>= 4;
    }
}

/// Appends a random UUID of version 4 to `out`.
fn write_uid(rng: &mut Rng, out: &mut Vec<u8>) {
    for (at, len) in [8, 4, 3, 3, 12].into_iter().enumerate() {
        if at > 0 {
            out.push(b'-');
        }
        match at {
            2 => out.push(b'4'),
            3 => out.push(b"89ab"[rng.usize(..4)]),
            _ => {}
        }
        write_hex(rng, len, out);
    }
}

// === impl Identity ===

impl Identity {
    /// Returns the generator for one random value of the object, such as its UUID.
    ///
    /// `purpose` is a number that is different for each such value.
    fn random(&self, purpose: u64) -> Rng {
        Rng::with_seed(mix(self.seed ^ mix(purpose)))
    }

    fn created(&self) -> i64 {
        let age = self.random(4).u64(..AGE_MAX);
        NEWEST - i64::try_from(age).expect("90 days fit")
    }

    fn node(&self) -> u32 {
        let number = self.random(5).u32(..self.nodes.max(1));
        // Without it, consecutive numbers differ only in the first of the three parts of the address.
        number.wrapping_mul(0x9E37_79B1)
    }
}

/// Returns the `SplitMix64` hash of a number. Different numbers have different hashes.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
