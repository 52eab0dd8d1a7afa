//! Compares every text that users read in errors, statuses, metrics and logs with recorded texts.
//!
//! - The tests do not compile if a new variant of an error is missing in the tables of [`errors`] and
//!   [`sync`].
//! - A test fails if a text is not recorded in `tests/messages.txt`.
//! - A test fails if a log message is not in the table of [`crate::logs`].
//!
//! `UPDATE_EXPECT=1 cargo test -p kube-informer --lib tests::` records the texts.

mod errors;
mod sync;
mod literals;

use std::{fs, path::Path};

use expect_test::expect_file;

use self::literals::{Literal, literals};

/// Returns all string literals of this crate, except those in tests, fuzz targets and model checks.
fn sentences() -> Vec<Literal> {
    let mut all = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    all
}

fn read(folder: &Path, all: &mut Vec<Literal>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "fuzzing", "model"].contains(&stem) {
            continue;
        }
        if path.is_dir() {
            read(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path).unwrap();
            let code = code.split("#[cfg(test)]\nmod ").next().unwrap();
            all.extend(literals(code));
        }
    }
}

#[test]
fn every_text_of_the_sources_is_listed() {
    let is_read = |literal: &&Literal| literal.log.is_none() && !literal.is_for_programmers();
    let is_sentence = |text: &String| text.split(' ').filter(|word| word.len() > 1).count() > 2;
    let mut texts: Vec<_> = sentences()
        .iter()
        .filter(is_read)
        .map(|literal| literal.text.clone())
        .filter(is_sentence)
        .collect();
    texts.sort();
    texts.dedup();
    expect_file!["tests/messages.txt"].assert_eq(&format!("{}\n", texts.join("\n")));
}

#[test]
fn every_log_message_is_in_the_table() {
    let table = include_str!("logs.rs");
    let sentences = sentences();
    let messages = sentences.iter().filter(|literal| literal.is_message());
    let (mut seen, mut missing) = (0, Vec::new());
    for Literal { text, .. } in messages {
        seen += 1;
        if text != "{what}" && !table.contains(&format!("`{text}`")) {
            missing.push(text);
        }
    }
    assert!(missing.is_empty(), "logs.rs lacks {missing:#?}");
    assert!(seen > 40, "{seen} calls of tracing were found");
}
