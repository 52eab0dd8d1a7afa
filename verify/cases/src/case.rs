//! Reads and writes a case: prose, a script of commands, and the expected responses.
//!
//! Guarantees: a case that is read and written without changes has the same text.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::command::Command;

/// One behavior of the API.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Path without extension, relative to the folder of all cases, such as `list/pages_have_one_revision`.
    pub(crate) name: String,
    /// Title and explanation: the text above the first command.
    prose: String,
    pub(crate) steps: Vec<Step>,
}

/// A command with the responses that it must have.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The lines of the command, as they are in the file.
    script: String,
    pub(crate) command: Command,
    /// What kube-apiserver responds.
    pub(crate) expected: String,
    /// What the embedded server responds, if it differs.
    pub(crate) embedded: Option<String>,
}

/// Mark of a line that belongs to the response of kube-apiserver.
const RESPONSE: &str = "< ";

/// Mark of a line that belongs to the response of the embedded server.
///
/// A case contains such lines only if this response differs from the response of kube-apiserver.
const EMBEDDED: &str = "<embedded ";

/// Mark of a line that belongs to a command.
const COMMAND: &str = "> ";

/// Start of a line that belongs to the body of a request or a response.
const INDENTATION: &str = "  ";

/// File extension of a case.
const EXTENSION: &str = "case";

impl Case {
    /// Reads all cases below `folder`, sorted by name.
    ///
    /// # Errors
    /// Returns an error if a file can't be read or is not a valid case. The error names the file.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        files.sort();
        let read = |path: &PathBuf| {
            let name = path.strip_prefix(folder)?.with_extension("");
            let name = name.to_str().context("the name is not UTF-8")?;
            let text = fs::read_to_string(path)?;
            Self::parse(name, &text)
        };
        let cases = files
            .iter()
            .map(|path| read(path).with_context(|| path.display().to_string()));
        cases.collect()
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut blocks = text.split("\n\n").map(str::trim_end).peekable();
        let mut prose = Vec::new();
        while let Some(block) = blocks.next_if(|block| !is_step(block)) {
            prose.push(block);
        }
        let prose = prose.join("\n\n");
        ensure!(prose.starts_with("# "), "the case has no title");
        let steps = blocks.filter(|block| !block.is_empty()).map(Step::parse);
        let steps = steps.collect::<Result<Vec<_>>>()?;
        ensure!(!steps.is_empty(), "the case has no command");
        let name = name.to_owned();
        Ok(Self { name, prose, steps })
    }

    /// Returns the title, without the mark.
    pub(crate) fn title(&self) -> &str {
        let first = self.prose.lines().next().unwrap_or_default();
        first.trim_start_matches("# ")
    }

    /// Returns whether the case compacts the server's history, which affects all cases that run at the same
    /// time.
    pub(crate) fn compacts(&self) -> bool {
        let mut commands = self.steps.iter().map(|step| &step.command);
        commands.any(|command| *command == Command::Compact)
    }

    /// Returns whether the case runs controllers, which act on all objects of the server.
    pub(crate) fn has_controllers(&self) -> bool {
        let mut commands = self.steps.iter().map(|step| &step.command);
        commands.any(|command| *command == Command::Controllers)
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = self.prose.clone();
        text.push('\n');
        for step in &self.steps {
            text.push('\n');
            text.push_str(&step.script);
            text.push_str(&marked(&step.expected, RESPONSE));
            if let Some(embedded) = &step.embedded {
                text.push_str(&marked(embedded, EMBEDDED));
            }
        }
        text
    }

    /// Writes the case to its file in `folder`.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.name).with_extension(EXTENSION);
        fs::write(&path, self.text()).with_context(|| path.display().to_string())
    }
}

/// The part of a step to which a line without a mark belongs.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Script,
    Expected,
    Embedded,
}

impl Step {
    pub(crate) fn script(&self) -> &str {
        &self.script
    }

    fn parse(block: &str) -> Result<Self> {
        let mut parts = [Part::Script, Part::Expected, Part::Embedded].map(|_| String::new());
        let (mut command, mut body) = (Vec::new(), Vec::new());
        let mut part = Part::Script;
        for line in block.lines() {
            let text = if let Some(head) = line.strip_prefix(EMBEDDED) {
                part = Part::Embedded;
                head
            } else if let Some(head) = line.strip_prefix(RESPONSE) {
                part = Part::Expected;
                head
            } else {
                if part == Part::Script {
                    if let Some(head) = line.strip_prefix(COMMAND) {
                        command.push(head);
                    } else if let Some(line) = line.strip_prefix(INDENTATION) {
                        body.push(line);
                    } else {
                        ensure!(line.starts_with("# "), "unexpected line: {line}");
                    }
                } else {
                    ensure!(line.starts_with(INDENTATION), "unexpected line: {line}");
                }
                line
            };
            let to = &mut parts[part as usize];
            to.push_str(text);
            to.push('\n');
        }
        let [script, expected, embedded] = parts;
        let command = Command::parse(&command, &body.join("\n"))
            .with_context(|| format!("in the command\n{script}"))?;
        Ok(Self {
            script,
            command,
            expected,
            embedded: (!embedded.is_empty()).then_some(embedded),
        })
    }
}

/// Returns whether a block of lines contains a command.
fn is_step(block: &str) -> bool {
    block.lines().any(|line| line.starts_with(COMMAND))
}

/// Puts `mark` before each line of `response` that is not indented.
fn marked(response: &str, mark: &str) -> String {
    let lines = response.lines().map(|line| {
        let mark = if line.starts_with(INDENTATION) {
            ""
        } else {
            mark
        };
        format!("{mark}{line}\n")
    });
    lines.collect()
}

/// Appends the paths of all cases below `folder` to `files`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A title

Prose.

# Why.
> PUT /a
> X: y
  {
  }
< 200 application/json
  {}
<embedded 201 application/json

> EVENTS w 1
< ADDED
  {}
< ADDED
  {}
";

    #[test]
    fn a_case_is_written_as_it_was_read() {
        let case = Case::parse("a/b", TEXT).unwrap();
        assert_eq!(case.text(), TEXT);
        assert_eq!(case.title(), "A title");
        let [put, events] = &*case.steps else {
            panic!("{case:?}");
        };
        let Command::Request(request) = &put.command else {
            panic!("{put:?}");
        };
        assert_eq!(request.body, b"{\n}");
        assert_eq!(put.expected, "200 application/json\n  {}\n");
        assert_eq!(put.embedded.as_deref(), Some("201 application/json\n"));
        assert_eq!(events.expected, "ADDED\n  {}\nADDED\n  {}\n");
    }

    #[test]
    fn cases_that_affect_others_are_found() {
        let affects = |script: &str| {
            let case = Case::parse("a", &format!("# A title\n\n{script}\n")).unwrap();
            [case.compacts(), case.has_controllers()]
        };
        assert_eq!(affects("> GET /a\n\n> COMPACT"), [true, false]);
        assert_eq!(affects("> CONTROLLERS"), [false, true]);
        assert_eq!(affects("> GET /a"), [false, false]);
    }

    #[test]
    fn a_file_without_title_command_or_mark_is_an_error() {
        for text in [
            "> GET /a\n",
            "# A title\n",
            "# A title\n\n> GET /a\nno mark\n",
            "# A title\n\n> GET /a\n< 200\nno indentation\n",
            "# A title\n\nProse.\n\n> GET /a\n\nProse.\n",
        ] {
            assert!(Case::parse("a", text).is_err(), "{text}");
        }
    }
}
