//! Splits shell text into commands: joins continued lines and removes comments.
//!
//! Quotes over several lines and here-documents are not supported.

/// Returns the commands in `lines`, each with the number of its first line.
///
/// Each element of `lines` is the number and the text of a line.
pub(super) fn commands<'a>(
    lines: impl IntoIterator<Item = (usize, &'a str)>,
) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in lines {
        let (first, mut text) = open.take().unwrap_or((number, String::new()));
        let line = line.trim();
        let continued = line.strip_suffix('\\');
        text.push_str(continued.unwrap_or(line).trim_end());
        if continued.is_some() {
            text.push(' ');
            open = Some((first, text));
        } else {
            commands.push((first, text));
        }
    }
    commands.extend(open);
    for (_, text) in &mut commands {
        text.truncate(without_comment(text).len());
    }
    commands.retain(|(_, text)| !text.is_empty());
    commands
}

/// Returns a command without its comment, which starts with an unquoted `#` at the start of a word.
fn without_comment(command: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    let mut starts_word = true;
    for (at, c) in command.char_indices() {
        if c == '#' && starts_word && quote.is_none() {
            return command[..at].trim_end();
        }
        starts_word = c.is_whitespace();
        if escaped {
            escaped = false;
        } else if c == '\\' && quote != Some('\'') {
            escaped = true;
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && matches!(c, '\'' | '"') {
            quote = Some(c);
        }
    }
    command.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(usize, String)> {
        commands(text.lines().enumerate())
    }

    #[test]
    fn a_continued_line_is_one_command_at_the_number_of_its_first_line() {
        assert_eq!(
            of("a\nserve \\\n  --churn 5/s \\\n  --controllers\nb\n"),
            [
                (0, "a".to_owned()),
                (1, "serve --churn 5/s --controllers".to_owned()),
                (4, "b".to_owned()),
            ]
        );
        assert_eq!(of("a \\"), [(0, "a".to_owned())]);
    }

    #[test]
    fn comments_and_empty_lines_are_dropped() {
        assert_eq!(
            of("# first\n\ncargo test   # all of it\n"),
            [(2, "cargo test".to_owned())]
        );
    }

    #[test]
    fn a_hash_in_quotes_or_within_a_word_begins_no_comment() {
        for text in [
            "serve --watch-cache-sizes pods#5",
            "echo 'a # b' \"c # d\"",
            "echo \\'",
        ] {
            assert_eq!(without_comment(text), text);
        }
        assert_eq!(without_comment("echo 'it' \\' # '"), "echo 'it' \\'");
    }
}
