//! `BENCHMARKING.md`: words by people, tables by this program.
//!
//! Guarantees: only what stands between `<!-- measured: NAME -->` and `<!-- end -->` is changed; a name
//! without such a place is an error, so that no table is lost.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

/// The document with the tables that are new.
pub(crate) struct Document {
    path: PathBuf,
    text: String,
    /// Names that have no place.
    lost: Vec<String>,
}

impl Document {
    pub(crate) fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("can't read {}", path.display()))?;
        let lost = Vec::new();
        Ok(Self { path, text, lost })
    }

    /// Puts a table into its place.
    pub(crate) fn set(&mut self, name: &str, table: &str) {
        match replaced(&self.text, name, table) {
            Some(text) => self.text = text,
            None => self.lost.push(name.to_owned()),
        }
    }

    /// # Errors
    /// A table has no place, or the file can't be written.
    pub(crate) fn write(&self) -> Result<()> {
        let path = self.path.display();
        if !self.lost.is_empty() {
            bail!("{path} has no place for {}", self.lost.join(", "));
        }
        fs::write(&self.path, &self.text).with_context(|| format!("can't write {path}"))
    }
}

fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let opening = format!("<!-- measured: {name} -->\n");
    let begin = text.find(&opening)? + opening.len();
    let length = text[begin..].find("<!-- end -->")?;
    let (before, after) = (&text[..begin], &text[begin + length..]);
    Some(format!("{before}\n{}\n\n{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_table_without_a_place_is_not_put_elsewhere() {
        assert_eq!(replaced(TEXT, "c", "x"), None);
        assert_eq!(replaced("<!-- measured: a -->\nno end", "a", "x"), None);
    }
}
