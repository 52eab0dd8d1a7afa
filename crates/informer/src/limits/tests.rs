//! Tests that `limits.md` lists every limit with its current value. Also tests the conversion of a text to
//! one line of limited length.

use super::*;
use crate::reflector::TimeoutConfig;

const DOCUMENT: &str = include_str!("../../limits.md");

fn bytes(count: u64) -> String {
    match count.ilog2() {
        0..10 => format!("{count} bytes"),
        10..20 => format!("{} KiB", count >> 10),
        20..30 => format!("{} MiB", count >> 20),
        _ => format!("{} GiB", count >> 30),
    }
}

/// Formats a number with commas between groups of three digits, such as `5,000,000`.
fn number(count: usize) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups = groups.map(|group| std::str::from_utf8(group).unwrap());
    groups.collect::<Vec<_>>().join(",")
}

fn time(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds > 120 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[test]
fn the_table_lists_every_limit_with_its_default() {
    let limits = Limits::default();
    let timeouts = TimeoutConfig::default();
    let wide = |count: usize| bytes(count as u64);
    let mut holds = [
        ("Limits::object_bytes", wide(limits.object_bytes)),
        ("Limits::objects", number(limits.objects)),
        ("Limits::list_bytes", bytes(limits.list_bytes)),
        ("Limits::list_pages", number(limits.list_pages as usize)),
        ("Limits::list_time", time(limits.list_time)),
        ("LIST_STALL", time(LIST_STALL)),
        (
            "TimeoutConfig::initial_events",
            time(timeouts.initial_events),
        ),
        ("TimeoutConfig::watch_headers", time(timeouts.watch_headers)),
        ("WATCH_GRACE", time(WATCH_GRACE)),
        ("TimeoutConfig::silence", time(timeouts.silence)),
        ("LIST_ENVELOPE_BYTES", wide(LIST_ENVELOPE_BYTES)),
        ("CONTINUE_TOKEN_BYTES", wide(CONTINUE_TOKEN_BYTES)),
        ("NAME_BYTES", wide(NAME_BYTES)),
        ("REVISION_BYTES", wide(REVISION_BYTES)),
        ("DEPTH", number(DEPTH)),
        ("PARTS", number(PARTS)),
        ("ERROR_BODY_BYTES", wide(ERROR_BODY_BYTES)),
        ("MESSAGE_BYTES", wide(MESSAGE_BYTES)),
        ("RETRY_AFTER_MAX", time(RETRY_AFTER_MAX)),
        ("DISCOVERY_BYTES", wide(DISCOVERY_BYTES)),
        ("NAMESPACE_BYTES", wide(NAMESPACE_BYTES)),
        ("SAVED_LINE_BYTES", bytes(SAVED_LINE_BYTES)),
        ("SAVED_FILE_BYTES", bytes(SAVED_FILE_BYTES)),
        ("SAVED_OBJECTS", number(SAVED_OBJECTS)),
    ]
    .map(|(name, value)| format!("`{name}`, {value}"));
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| "));
    let limits = rows.filter_map(|row| row.split(" | ").nth(1));
    let mut said: Vec<_> = limits.filter(|limit| limit.starts_with('`')).collect();
    holds.sort_unstable();
    said.sort_unstable();
    assert_eq!(said, holds);
}

#[test]
fn a_text_becomes_one_line_truncated_at_a_character_boundary() {
    assert_eq!(one_line("a\n\u{1b}[31mb\u{9b}c", 100), "a  [31mb c");
    assert_eq!(one_line("äöü", 3), "ä…");
    assert_eq!(one_line("äöü", 6), "äöü");
}
