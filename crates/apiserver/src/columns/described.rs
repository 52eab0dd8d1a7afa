//! Describes the printer columns of the built-in kinds: types, formats, priorities and descriptions.
//!
//! `cargo xtask kinds` writes the table from the Go sources of a pinned Kubernetes version.
//!
//! Guarantees: the table is parsed for the first response that needs it, not when a server is built.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

/// The columns of the built-in kinds of Kubernetes 1.36; the file's header explains the format.
const V1_36: &str = include_str!("v1_36.tsv");

/// Name in the table of the columns that a kind without columns of its own has.
const OTHERS: &str = "-";

/// The rows of the table.
struct Described {
    /// The rows of the columns of each kind.
    columns: BTreeMap<&'static str, Vec<&'static str>>,
    /// Descriptions of API fields, by the names that rows use.
    texts: BTreeMap<&'static str, &'static str>,
}

/// Returns the `columnDefinitions` in a table of objects of a built-in kind.
pub(crate) fn definitions(kind: &str) -> Value {
    static DESCRIBED: OnceLock<Described> = OnceLock::new();
    let described = DESCRIBED.get_or_init(|| Described::parse(V1_36));
    let own = described.columns.get(kind);
    let rows = own.or_else(|| described.columns.get(OTHERS));
    let rows = rows.into_iter().flatten();
    rows.filter_map(|row| described.definition(row)).collect()
}

impl Described {
    fn parse(table: &'static str) -> Described {
        let mut columns: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut texts = BTreeMap::new();
        let mut kind = OTHERS;
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            if let Some(row) = line.strip_prefix('\t') {
                columns.entry(kind).or_default().push(row);
            } else if let Some(named) = line.strip_prefix('=') {
                texts.extend(named.split_once('\t'));
            } else {
                kind = line;
            }
        }
        Described { columns, texts }
    }

    /// Returns a column from its row; `None` if the row is malformed.
    fn definition(&self, row: &str) -> Option<Value> {
        let mut cells = row.split('\t');
        let (name, cell_type, format) = (cells.next()?, cells.next()?, cells.next()?);
        let priority: u8 = cells.next()?.parse().ok()?;
        let description = match cells.next()? {
            text if text.starts_with('=') => self.texts.get(&text[1..])?,
            text => text,
        };
        Some(json!({
            "name": name,
            "type": cell_type,
            "format": format,
            "description": unescaped(description),
            "priority": priority,
        }))
    }
}

/// Replaces `\n` and `\\` in a description of the table.
fn unescaped(text: &str) -> String {
    let parts: Vec<String> = text
        .split("\\\\")
        .map(|part| part.replace("\\n", "\n"))
        .collect();
    parts.join("\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_a_column() {
        let described = Described::parse(V1_36);
        for row in described.columns.values().flatten() {
            assert!(described.definition(row).is_some(), "{row}");
        }
    }

    #[test]
    fn line_breaks_in_descriptions_are_escaped() {
        assert_eq!(unescaped(r"a\nb\\n"), "a\nb\\n");
    }
}
