//! Reads the fields, their types, and `MarshalJSON` methods of the Go types that belong to a proto package.
//!
//! The Go sources must have the format of gofmt. A field whose struct tags can't be parsed is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::proto::ProtoField;

/// A Go package, whose source text is read on first use.
pub(super) struct Package {
    folder: PathBuf,
    text: Option<String>,
}

/// A field of a Go struct: its JSON tag and its type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GoField {
    /// Number of fields that the struct declares before this field.
    pub(super) position: usize,
    /// Name in the JSON tag, if present.
    pub(super) json_name: Option<String>,
    pointer: bool,
    /// Type in the source text, such as `map[ResourceName]resource.Quantity`, without a leading `*`.
    value: String,
    /// Options in the JSON tag, such as `omitempty`.
    json_options: Vec<String>,
}

impl Package {
    pub(super) fn new(folder: PathBuf) -> Package {
        Package { folder, text: None }
    }

    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Package {
        Package {
            folder: PathBuf::new(),
            text: Some(text.to_owned()),
        }
    }

    /// Returns the text of the package's Go files, except tests and generated files.
    fn text(&mut self) -> Result<&str> {
        if self.text.is_none() {
            let mut text = String::new();
            let entries = std::fs::read_dir(&self.folder)
                .with_context(|| format!("can't list {}", self.folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let written_by_hand = name.ends_with(".go")
                    && !name.ends_with("_test.go")
                    && !name.starts_with("generated")
                    && !name.starts_with("zz_generated");
                if written_by_hand {
                    text += &std::fs::read_to_string(&path)
                        .with_context(|| format!("can't read {}", path.display()))?;
                }
            }
            self.text = Some(text);
        }
        Ok(self.text.as_deref().unwrap_or_default())
    }

    /// Returns the type of a field as Go's `reflect` shows it, such as `map[v1.ResourceName]resource.Quantity`.
    ///
    /// `name` is the name of the package, such as `v1`.
    pub(super) fn type_of(&mut self, name: &str, field: &GoField) -> Result<String> {
        let text = self.text()?;
        Ok(shown(&field.value, name, text))
    }

    /// Returns whether the Go type named `type_name` has a method `MarshalJSON`.
    pub(super) fn writes_json(&mut self, type_name: &str) -> Result<bool> {
        let text = self.text()?;
        let ends = [
            format!(" {type_name}) MarshalJSON("),
            format!(" *{type_name}) MarshalJSON("),
        ];
        let mut methods = text.lines().filter(|line| line.starts_with("func ("));
        Ok(methods.any(|line| ends.iter().any(|end| line.contains(end))))
    }

    /// Returns whether the Go type named `type_name` is a slice type (`type X []Y`).
    pub(super) fn is_list(&mut self, type_name: &str) -> Result<bool> {
        let start = format!("type {type_name} []");
        Ok(self.text()?.lines().any(|line| line.starts_with(&start)))
    }

    /// Returns the fields of a Go struct, by the number in their protobuf tag.
    pub(super) fn fields(&mut self, type_name: &str) -> Result<BTreeMap<u32, GoField>> {
        let start = format!("type {type_name} struct {{");
        let mut fields = BTreeMap::new();
        let text = self.text()?;
        let empty = format!("type {type_name} struct{{}}");
        if text.lines().any(|line| line == empty) {
            return Ok(fields);
        }
        let mut lines = text.lines().skip_while(|line| *line != start);
        lines
            .next()
            .with_context(|| format!("no struct {type_name}"))?;
        for line in lines.take_while(|line| *line != "}").map(str::trim) {
            if line.starts_with("//") {
                continue;
            }
            if let Some((number, mut field)) = field(line).with_context(|| line.to_owned())? {
                field.position = fields.len();
                let twice = fields.insert(number, field).is_some();
                ensure!(!twice, "{type_name} has two fields of number {number}");
            }
        }
        Ok(fields)
    }
}

impl GoField {
    /// Returns the keyword for the condition under which Go writes this field to JSON.
    ///
    /// The keywords are `always`, `nonzero`, `sent`, `nullable` and `inline`. The header of the generated
    /// table of protobuf messages describes them. `field` is the same field in the proto file.
    pub(super) fn presence(&self, field: &ProtoField) -> &'static str {
        let omits_empty = self.has("omitempty");
        if self.has("inline") {
            "inline"
        } else if self.pointer {
            if omits_empty { "sent" } else { "nullable" }
        } else if self.has("omitzero") || (omits_empty && !field.is_message()) {
            // In encoding/json, structs are never empty.
            "nonzero"
        } else {
            "always"
        }
    }

    fn has(&self, option: &str) -> bool {
        self.json_options.iter().any(|known| known == option)
    }
}

/// Returns a Go type as `reflect` shows it: each name has the name of its package, not of an import.
///
/// `text` is the source text of `package`, where the type is used.
fn shown(value: &str, package: &str, text: &str) -> String {
    if let Some(item) = value.strip_prefix("[]") {
        return format!("[]{}", shown(item, package, text));
    }
    if let Some(item) = value.strip_prefix('*') {
        return format!("*{}", shown(item, package, text));
    }
    if let Some((key, item)) = value
        .strip_prefix("map[")
        .and_then(|rest| rest.split_once(']'))
    {
        let [key, item] = [key, item].map(|value| shown(value, package, text));
        return format!("map[{key}]{item}");
    }
    match value.split_once('.') {
        Some((import, name)) => format!("{}.{name}", imported(import, text)),
        None if value == "byte" => "uint8".to_owned(),
        None if value.starts_with(char::is_lowercase) => value.to_owned(),
        None => format!("{package}.{value}"),
    }
}

/// Returns the name of the package that the source text imports as `import`.
///
/// It is the last part of the path, as for all packages that define types of the API.
fn imported<'a>(import: &'a str, text: &'a str) -> &'a str {
    let start = format!("{import} \"");
    let mut paths = text.lines().filter_map(|line| {
        let path = line.trim().strip_prefix(&start)?;
        path.strip_suffix('"')?.rsplit('/').next()
    });
    paths.next().unwrap_or(import)
}

/// Returns the field that a line of a Go struct declares, with its protobuf number.
fn field(line: &str) -> Result<Option<(u32, GoField)>> {
    let Some((declared, tags)) = line.split_once('`') else {
        return Ok(None);
    };
    let Some(wire) = tag(tags, "protobuf") else {
        // Since 1.37, the tag of an embedded struct is empty.
        let is_inlined = [Some(",inline"), Some("")].contains(&tag(tags, "json"));
        ensure!(
            is_inlined && declared.trim().ends_with("TypeMeta"),
            "a field without a number"
        );
        return Ok(None);
    };
    let number = wire.split(',').nth(1).context("a tag without a number")?;
    let mut json = tag(tags, "json").unwrap_or_default().split(',');
    let name = json.next().unwrap_or_default();
    let declared: Vec<_> = declared.split_whitespace().collect();
    let mut field = GoField {
        position: 0,
        json_name: (!name.is_empty()).then(|| name.to_owned()),
        pointer: declared.last().is_some_and(|value| value.starts_with('*')),
        value: declared
            .last()
            .map_or("", |value| value.trim_start_matches('*'))
            .to_owned(),
        json_options: json.map(str::to_owned).collect(),
    };
    if declared.len() == 1 && name.is_empty() && !field.has("inline") {
        field.json_options.push("inline".to_owned());
    }
    ensure!(
        !(field.has("inline") && field.pointer),
        "an inlined pointer"
    );
    Ok(Some((number.parse()?, field)))
}

/// Returns the value of a key in the struct tags of a Go field.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let start = tags.find(&format!("{key}:\""))? + key.len() + 2;
    tags[start..].split('"').next()
}
