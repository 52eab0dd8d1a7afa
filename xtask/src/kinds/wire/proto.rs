//! Parses the `generated.proto` files that the Kubernetes tool go-to-protobuf writes.
//!
//! The lines of a message must be comments, or optional, repeated or map fields. Any other line is an error.
//! Nested messages are not supported.

use anyhow::{Context as _, Result, ensure};

/// The package name and the messages of a proto file.
#[derive(Debug)]
pub(super) struct ProtoFile {
    pub(super) package: String,
    /// Full name (`package.Name`) and fields of each message.
    pub(super) messages: Vec<(String, Vec<ProtoField>)>,
}

/// A field of a protobuf message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProtoField {
    pub(super) number: u32,
    pub(super) name: String,
    /// Type of the field: `x` for a single value of the type `x`, `[]x` for a repeated field, or `{}x` for a
    /// map from strings to `x`.
    ///
    /// The name of a message type includes its package.
    pub(super) value: String,
}

impl ProtoField {
    /// Returns the item type of a repeated field, the value type of a map, or the type of any other field.
    pub(super) fn inner(&self) -> &str {
        self.value.trim_start_matches("[]").trim_start_matches("{}")
    }

    /// Returns whether the field is a single message.
    pub(super) fn is_message(&self) -> bool {
        self.value.contains('.') && !self.value.starts_with(['[', '{'])
    }
}

/// Parses the package name and the messages of a proto file.
pub(super) fn parse(text: &str) -> Result<ProtoFile> {
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("package ")?.strip_suffix(';'))
        .context("no package")?;
    let mut messages = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(name) = line
            .strip_prefix("message ")
            .and_then(|rest| rest.strip_suffix(" {"))
        else {
            continue;
        };
        let mut fields = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "}") {
            if !line.is_empty() && !line.starts_with("//") {
                let field = field(line, package);
                fields.push(field.with_context(|| format!("{name} has the line {line:?}"))?);
            }
        }
        messages.push((format!("{package}.{name}"), fields));
    }
    Ok(ProtoFile {
        package: package.to_owned(),
        messages,
    })
}

/// Parses a line that declares a field of a message of `package`, such as `optional string name = 1;`.
fn field(line: &str, package: &str) -> Result<ProtoField> {
    let (declared, number) = line
        .strip_suffix(';')
        .and_then(|line| line.split_once(" = "))
        .context("no field")?;
    let (value, name) = declared
        .rsplit_once(' ')
        .context("a field without a type")?;
    let (container, inner) = if let Some(inner) = value.strip_prefix("optional ") {
        ("", inner)
    } else if let Some(inner) = value.strip_prefix("repeated ") {
        ("[]", inner)
    } else {
        let inner = value
            .strip_prefix("map<string, ")
            .and_then(|inner| inner.strip_suffix('>'));
        ("{}", inner.context("unsupported type")?)
    };
    ensure!(!inner.contains(' '), "unsupported type");
    let value = match inner.strip_prefix('.') {
        Some(full) => format!("{container}{full}"),
        None if inner.starts_with(char::is_uppercase) => format!("{container}{package}.{inner}"),
        None => format!("{container}{inner}"),
    };
    Ok(ProtoField {
        number: number.parse().context("a number")?,
        name: name.to_owned(),
        value,
    })
}
