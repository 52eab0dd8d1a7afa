//! Replaces the tables of measured figures in `BENCHMARKING.md` and `README.md`.
//!
//! Guarantees: [`Document::write`] changes only the text between the comments `<!-- measured: NAME -->` and
//! `<!-- end -->`. [`Document::write`] returns an error if the file lacks the comments of a replaced table.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

/// The text of a Markdown file that contains named tables of measured figures.
pub(crate) struct Document {
    path: PathBuf,
    text: String,
    /// Names of the tables that [`set`](Self::set) did not find in the file.
    lost: Vec<String>,
}

impl Document {
    pub(crate) fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("can't read {}", path.display()))?;
        let lost = Vec::new();
        Ok(Self { path, text, lost })
    }

    /// Replaces the table `name` in memory; [`write`](Self::write) fails if `name` is unknown.
    pub(crate) fn set(&mut self, name: &str, table: &str) {
        match replaced(&self.text, name, table) {
            Some(text) => self.text = text,
            None => self.lost.push(name.to_owned()),
        }
    }

    /// Returns the text of the cell at the labels `row` and `column` of the table `name`.
    pub(crate) fn cell(&self, name: &str, row: &str, column: &str) -> Option<&str> {
        let (_, table, _) = parts(&self.text, name)?;
        let mut at = None;
        for line in table.lines() {
            let cells = cells(line);
            if cells.is_empty() {
                at = None;
            } else if at.is_none() {
                // The first row is the head. A table without the column has no matching row.
                at = Some(cells.iter().position(|cell| *cell == column));
            } else if cells[0] == row
                && let Some(Some(at)) = at
            {
                return cells.get(at).copied();
            }
        }
        None
    }

    /// Writes the document to the file from which it was read.
    ///
    /// # Errors
    /// Returns an error if [`set`](Self::set) was called for an unknown table, or if the write fails.
    pub(crate) fn write(&self) -> Result<()> {
        let path = self.path.display();
        if !self.lost.is_empty() {
            bail!("{path} has no place for {}", self.lost.join(", "));
        }
        fs::write(&self.path, &self.text).with_context(|| format!("can't write {path}"))
    }
}

fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let (before, _, after) = parts(text, name)?;
    Some(format!("{before}\n{}\n\n{after}", table.trim()))
}

/// Splits a document's text into the parts before, in and after the table `name`.
fn parts<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let opening = format!("<!-- measured: {name} -->\n");
    let begin = text.find(&opening)? + opening.len();
    let end = begin + text[begin..].find("<!-- end -->")?;
    Some((&text[..begin], &text[begin..end], &text[end..]))
}

/// Returns the cells of `line` if it is a row of a Markdown table, and otherwise no cells.
fn cells(line: &str) -> Vec<&str> {
    let row = line.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    row.map_or_else(Vec::new, |row| row.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Document {
        /// Creates a document with the content `text` and without a file.
        pub(crate) fn of(text: &str) -> Self {
            Self {
                path: PathBuf::new(),
                text: text.to_owned(),
                lost: Vec::new(),
            }
        }

        pub(crate) fn text(&self) -> &str {
            assert!(self.lost.is_empty(), "no place for {:?}", self.lost);
            &self.text
        }
    }

    const TEXT: &str = "Words.\n<!-- measured: a -->\nold\n<!-- end -->\nMore.\n<!-- measured: b -->\n<!-- end -->\n";

    #[test]
    fn only_the_place_of_a_table_changes() {
        let text = replaced(TEXT, "a", "| new |\n").unwrap();
        assert_eq!(
            text,
            "Words.\n<!-- measured: a -->\n\n| new |\n\n<!-- end -->\nMore.\n<!-- measured: b -->\n<!-- end -->\n"
        );
        assert_eq!(replaced(&text, "a", "| new |\n"), Some(text));
    }

    #[test]
    fn a_table_without_a_place_is_not_inserted() {
        assert_eq!(replaced(TEXT, "c", "x"), None);
        assert_eq!(replaced("<!-- measured: a -->\nno end", "a", "x"), None);
    }

    #[test]
    fn a_cell_is_found_by_its_place_its_row_and_its_column() {
        let two = "<!-- measured: a -->\n\n|  | x | y |\n| --- | ---: | ---: |\n| r | 1 | 2 (1–3) |\n\n\
                   |  | z |\n| --- | ---: |\n| r | 4 |\n| s | 5 |\n\n<!-- end -->\n| r | 6 |\n";
        let document = Document::of(two);
        for (row, column, cell) in [
            ("r", "x", Some("1")),
            ("r", "y", Some("2 (1–3)")),
            ("r", "z", Some("4")),
            ("s", "z", Some("5")),
            ("s", "x", None),
            ("r", "w", None),
        ] {
            assert_eq!(document.cell("a", row, column), cell, "{row} {column}");
        }
        assert_eq!(document.cell("b", "r", "x"), None);
    }
}
