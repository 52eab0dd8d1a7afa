//! Reads the shell commands of a Markdown file: the lines of its fenced code blocks with the language `sh`.

use anyhow::{Result, bail};

use super::shell;

/// Languages that a code block must not have.
///
/// Shell commands must be in `sh` blocks, because only the commands in `sh` blocks are checked.
const OTHER_SHELLS: [&str; 4] = ["bash", "console", "shell", "zsh"];

/// A shell command in a document, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Path of the document, relative to the root of the workspace.
    pub(super) file: String,
    pub(super) line: usize,
    /// Text of the command on one line, without comments.
    pub(super) text: String,
}

impl Command {
    /// Returns whether CI must run the command.
    pub(super) fn must_run(&self) -> bool {
        self.file == "README.md" || self.file.starts_with("docs/")
    }
}

/// Returns the commands of a Markdown document, in order.
///
/// # Errors
/// Returns an error if a code block has a language in [`OTHER_SHELLS`].
pub(super) fn read(file: &str, markdown: &str) -> Result<Vec<Command>> {
    let mut language = None;
    let mut lines = Vec::new();
    for (index, line) in markdown.lines().enumerate() {
        let Some(fence) = line.trim_start().strip_prefix("```") else {
            if language == Some("sh") {
                lines.push((index + 1, line));
            }
            continue;
        };
        language = match language {
            Some(_) => None,
            None => Some(fence.trim()),
        };
        if let Some(other) = language.filter(|it| OTHER_SHELLS.contains(it)) {
            let line = index + 1;
            bail!(
                "{file}:{line}: a block of commands has the language `{other}`; write `sh`, so that its commands are checked"
            );
        }
    }
    let commands = shell::commands(lines).into_iter();
    let commands = commands.map(|(line, text)| Command {
        file: file.to_owned(),
        line,
        text,
    });
    Ok(commands.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_sh_have_commands() {
        let text =
            "# A\n```text\nno\n```\n```sh\na   # b\nc \\\n  d\n```\ne\n  ```sh\n  f\n  ```\n";
        let commands = read("docs/a.md", text).unwrap();
        let found: Vec<_> = commands
            .iter()
            .map(|command| (command.line, command.text.as_str()))
            .collect();
        assert_eq!(found, [(6, "a"), (7, "c d"), (12, "f")]);
        assert!(commands.iter().all(Command::must_run));
    }

    #[test]
    fn a_block_of_another_shell_is_an_error_with_its_place() {
        let error = read("README.md", "a\n```bash\nls\n```\n").unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("README.md:2: "), "{error}");
    }
}
