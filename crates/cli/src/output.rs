//! Writes the output of the program. No other module prints.
//!
//! Guarantees:
//! - results are written to standard output;
//! - a failure is written as one line to standard error;
//! - if the reader of standard output closes the pipe, as `| head` does, further output is discarded and the
//!   program continues.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

/// Minimum width, in characters, of the column `who` of a [`Line`].
const WHO: usize = 18;
/// Minimum width, in characters, of the column `text` of a [`Line`].
const TEXT: usize = 46;
/// Minimum width, in characters, of the column `object` of a [`Line`].
const OBJECT: usize = 34;

/// Minimum width, in characters, of each column of numbers that [`table`] prints.
const NUMBER: usize = 7;

/// One line of the demo's output: a step of a control loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Time from the start of the demo to the step.
    pub(crate) at: Duration,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) object: String,
    pub(crate) revision: String,
}

/// A table row. An unknown number is `None`.
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
            "{seconds:>6.2}s  {who:<WHO$}  {text:<TEXT$}  {object:<OBJECT$}  rv {revision}"
        )
    }
}

/// Prints the column headings of the demo's output, whose lines are [`Line`]s.
pub(crate) fn heading() {
    let (who, text, object) = ("LOOP", "WHAT IT SEES OR HAS DONE", "OBJECT");
    say(format_args!(
        "{:>7}  {who:<WHO$}  {text:<TEXT$}  {object:<OBJECT$}  REVISION",
        "TIME"
    ));
}

/// Prints the text as one line to standard output.
pub(crate) fn say(text: impl fmt::Display) {
    print(format_args!("{text}\n"));
}

/// Prints the text to standard output without a line break.
pub(crate) fn print(text: impl fmt::Display) {
    let mut out = io::stdout().lock();
    // The write fails if the reader has closed the pipe. The output is then discarded.
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints an error to standard error, with line breaks replaced by semicolons.
pub(crate) fn complain(text: impl fmt::Display) {
    let text = text.to_string();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    // The write fails if standard error is closed. The message can't be reported elsewhere.
    let _ = writeln!(io::stderr().lock(), "error: {}", lines.join("; "));
}

/// Prints a table whose first column has the heading `title`. An unknown number is printed as a dash.
pub(crate) fn table(title: &str, columns: &[&str], rows: &[Row]) {
    let lengths = rows.iter().map(|row| row.name.len());
    let width = lengths.chain([title.len()]).max().unwrap_or(0);
    let wide = |column: &str| column.len().max(NUMBER);
    let heads: Vec<_> = columns
        .iter()
        .map(|column| format!("  {column:>0$}", wide(column)))
        .collect();
    say(format_args!("{title:<width$}{}", heads.concat()));
    for Row { name, numbers } in rows {
        let cells: Vec<_> = columns
            .iter()
            .zip(numbers)
            .map(|(column, number)| {
                let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
                format!("  {number:>0$}", wide(column))
            })
            .collect();
        say(format_args!("{name:<width$}{}", cells.concat()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_line_are_aligned() {
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
        assert!(one.starts_with("  0.41s  scheduler "), "{one}");
        assert!(one.ends_with("  rv 17"), "{one}");
        assert_eq!(one.find("rv 17"), other.find("rv 100"));
    }
}
