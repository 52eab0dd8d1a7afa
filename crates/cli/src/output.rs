//! What people see; the only file that prints.
//!
//! Guarantees: results go to standard output, failures to standard error, one line each; a reader that goes away (`| head`) ends the printing and not the program.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

/// The widths of the columns of a [`Line`], so that names of a usual length stay aligned.
const WHO: usize = 18;
const TEXT: usize = 47;
const OBJECT: usize = 28;

/// One step of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Since the story began.
    pub(crate) at: Duration,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) object: String,
    pub(crate) revision: String,
}

/// One row of a table: a name and its numbers, which may be unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Option<u64>>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line {
            at,
            who,
            text,
            object,
            revision,
        } = self;
        let seconds = at.as_secs_f64();
        write!(
            f,
            "{seconds:>7.3}s  {who:<WHO$}  {text:<TEXT$}  {object:<OBJECT$}  rv {revision}"
        )
    }
}

/// Prints one line for people.
pub(crate) fn say(text: impl fmt::Display) {
    print(format_args!("{text}\n"));
}

/// Prints text as it is.
pub(crate) fn print(text: impl fmt::Display) {
    let mut out = io::stdout().lock();
    // Whoever read it has gone away.
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints what went wrong and what to do about it.
pub(crate) fn complain(text: impl fmt::Display) {
    // Without standard error there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "error: {text}");
}

/// Prints a table; an unknown number is a dash.
pub(crate) fn table(title: &str, columns: &[&str], rows: &[Row]) {
    let lengths = rows.iter().map(|row| row.name.len());
    let width = lengths.chain([title.len()]).max().unwrap_or(0);
    let mut text = format!("{title:<width$}");
    for column in columns {
        text.push_str(&format!("  {column:>7}"));
    }
    say(text);
    for row in rows {
        let mut text = format!("{:<width$}", row.name);
        for (column, number) in columns.iter().zip(&row.numbers) {
            let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let wide = column.len().max(7);
            text.push_str(&format!("  {number:>wide$}"));
        }
        say(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_line_stay_where_they_are() {
        let line = |who: &str, revision: &str| {
            let line = Line {
                at: Duration::from_millis(412),
                who: who.to_owned(),
                text: "bound the pod to node-1".to_owned(),
                object: "pod/web-1".to_owned(),
                revision: revision.to_owned(),
            };
            line.to_string()
        };
        let (one, other) = (line("scheduler", "17"), line("node-agent/node-1", "100"));
        assert!(one.starts_with("  0.412s  scheduler "), "{one}");
        assert!(one.ends_with("  rv 17"), "{one}");
        assert_eq!(one.find("rv 17"), other.find("rv 100"));
    }
}
