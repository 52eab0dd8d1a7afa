//! Generates the table of protobuf messages: the fields of each message, and their JSON format.
//!
//! Field numbers and types come from the `generated.proto` files of the Go modules in [`MODULES`]. Proto
//! files do not define which empty fields JSON omits. These rules come from the Go struct tags.
//!
//! The table contains the messages of the kinds that a Kubernetes server serves by default, and the messages
//! in [`ROOTS`]. It also contains each message that is the type of a field of another message in the table.
//! The messages are sorted by name.
//!
//! Extensions of fields, such as merge keys, come from the OpenAPI documents; see [`described`].
//!
//! The input is the Go modules of two Kubernetes releases. The earlier release determines the served kinds.
//! The later release adds messages and fields, for clients that use newer types. A message or field of both
//! releases has the JSON format of the earlier release.
//!
//! It is an error if a field is only in the proto file or only in the Go struct. It is also an error if a
//! type has a method `MarshalJSON` and is not in [`FORMS`].

mod described;
mod go_source;
mod proto;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use go_source::{GoField, Package};
use proto::ProtoField;

use super::openapi::Document;

/// Go modules of the served kinds. Version `v0.x.y` belongs to Kubernetes `v1.x.y`.
pub(super) const MODULES: [&str; 4] = [
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
];

/// Types of request and response bodies that have no API resource.
///
/// Each entry contains the OpenAPI name of the type, and its kinds in the form `apiVersion/Kind`.
const ROOTS: [(&str, &[&str]); 8] = [
    // Discovery documents.
    (
        "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
        &["apidiscovery.k8s.io/v2/APIGroupDiscoveryList"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
        &["v1/APIGroup"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
        &["v1/APIGroupList"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
        &["v1/APIResourceList"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions",
        &["v1/APIVersions"],
    ),
    // The server accepts `DeleteOptions` with any `apiVersion`.
    ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", &[]),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
        &["meta.k8s.io/v1/PartialObjectMetadata"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
        &["v1/Status"],
    ),
];

/// Protobuf messages whose Go type has a method `MarshalJSON`, each with the name of its JSON format.
///
/// The generated table of messages contains these names. The protobuf decoder and encoder implement the
/// formats.
const FORMS: [(&str, &str); 10] = [
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", "json"),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime",
        "microTime",
    ),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", "json"),
    (
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
        "intOrString",
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
        "json",
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        EITHER,
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        EITHER,
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        EITHER,
    ),
];

/// JSON format of a type with two fields: the second field, or the first if the second is null.
const EITHER: &str = "either";

/// The scalar protobuf types that the table of messages supports.
const SCALARS: [&str; 6] = ["bool", "bytes", "double", "int32", "int64", "string"];

/// The downloaded Go modules that define the API types of one Kubernetes release.
pub(super) struct Sources {
    /// Name and folder of each Go module.
    pub(super) modules: Vec<(&'static str, PathBuf)>,
}

// === impl Sources ===

impl Sources {
    /// Returns the folder of a module.
    pub(super) fn folder(&self, module: &str) -> Result<&Path> {
        let mut modules = self.modules.iter();
        let found = modules.find(|(name, _)| *name == module);
        let (_, folder) = found.with_context(|| format!("{module} is not one of the modules"))?;
        Ok(folder)
    }
}

/// The messages of all proto files, and the Go packages that define the same types.
#[derive(Default)]
struct Library {
    messages: BTreeMap<String, Vec<ProtoField>>,
    /// The Go packages, by the proto package in the same folder.
    packages: BTreeMap<String, Package>,
}

/// A message of the generated table.
struct Entry {
    /// Format of the message in JSON, such as `object`.
    form: &'static str,
    /// Whether server-side apply replaces the message as a whole.
    is_atomic: bool,
    /// The fields of the message; empty for a format without fields, such as `time`.
    rows: Vec<Row>,
}

/// Returns the text of the generated table of protobuf messages.
///
/// The first elements of `versions` and `sources` belong to one Kubernetes release. The second elements
/// belong to a later release, from which the table takes only additional messages and fields. `document` contains
/// the OpenAPI definitions of the first release, and `described` the served kinds of these definitions.
pub(super) fn table(
    versions: [&str; 2],
    sources: [&Sources; 2],
    document: &Document,
    described: &BTreeMap<&str, BTreeSet<String>>,
) -> Result<String> {
    let [mut library, mut later] = [Library::default(), Library::default()];
    for (library, sources) in [(&mut library, sources[0]), (&mut later, sources[1])] {
        for (module, folder) in &sources.modules {
            library.read(module, folder)?;
        }
    }
    let kinds = kinds_of(described);
    let mut messages = library.messages(&mut later, &kinds)?;
    described::add(&mut messages, document, described.keys().copied())?;
    Ok(text(versions, &messages, &kinds))
}

/// Returns the kinds that each protobuf message represents, in the form `apiVersion/Kind`, by message name.
///
/// The result contains the messages in [`ROOTS`], and those of `described`.
fn kinds_of<'a>(described: &'a BTreeMap<&str, BTreeSet<String>>) -> BTreeMap<String, Vec<&'a str>> {
    let mut kinds: BTreeMap<String, Vec<&str>> = ROOTS
        .map(|(root, kinds)| (message_name(root), kinds.to_vec()))
        .into();
    for (name, of_name) in described {
        let of_name = of_name.iter().map(String::as_str).collect();
        kinds.insert(message_name(name), of_name);
    }
    kinds
}

/// Returns the protobuf message of an OpenAPI definition: `io.k8s.a-b.x` becomes `k8s.io.a_b.x`.
fn message_name(definition: &str) -> String {
    let name = definition.replace('-', "_");
    match name.strip_prefix("io.k8s.") {
        Some(rest) => format!("k8s.io.{rest}"),
        None => name,
    }
}

/// Returns the OpenAPI definition of a protobuf message, the inverse of [`message_name`].
fn definition_name(message: &str) -> String {
    let name = message.replace('_', "-");
    match name.strip_prefix("k8s.io.") {
        Some(rest) => format!("io.k8s.{rest}"),
        None => name,
    }
}

/// Returns the text of a table of messages.
fn text(
    versions: [&str; 2],
    messages: &BTreeMap<String, Entry>,
    kinds: &BTreeMap<String, Vec<&str>>,
) -> String {
    let mut table = header(versions);
    for (name, entry) in messages {
        let atomic = entry.is_atomic.then_some("atomic");
        let of_name = kinds.get(name).into_iter().flatten().copied();
        let head = [name, entry.form].into_iter().chain(atomic).chain(of_name);
        table.push_str(&head.collect::<Vec<_>>().join("\t"));
        table.push('\n');
        for row in &entry.rows {
            writeln!(table, "\t{}", row.text()).expect("writing to a String does not fail");
        }
    }
    table
}

fn header([version, later]: [&str; 2]) -> String {
    format!(
        "# Written by `cargo xtask kinds` from {} at {version} (generated.proto, struct tags) and the OpenAPI documents of {}; do not edit.\n\
         # With the messages and fields that {later} adds; the last column of such a field is `added`.\n\
         # A line that starts with a name is a message: its form, `atomic` if apply replaces it as a whole, and the kinds it describes as apiVersion/Kind; tabs between the columns.\n\
         # Lines that start with a tab are its fields, in the order in which Go writes them to JSON: number, name in JSON, type, presence, the Go type if the type does not determine it, and words; empty columns at the end are left out.\n\
         # Words: `required`; `patch=` strategies and `key=` merge key of strategic merge patches; `list=` and `map=` types and list keys of apply; `default=` if it is not the zero value of a field with the presence `always`.\n\
         # Types are a scalar's or a message's name; `[]` before them makes a list, `{{}}` a map from strings.\n\
         # Presence: `always`, with a zero value if need be; `nonzero` values only; as `sent`; `nullable` is null unless sent; `inline` has its members in the parent.\n\
         # Forms: `object`; `list` is the list in its only field; `either` is its second field or, if that is null, the first; others have JSON of their own.\n",
        MODULES.join(", "),
        super::MODULE,
    )
}

// === impl Library ===

impl Library {
    /// Reads every `generated.proto` file below the folder of a Go module.
    fn read(&mut self, module: &str, folder: &Path) -> Result<()> {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder)
                .with_context(|| format!("can't list a folder of {module}"))?;
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.ends_with("generated.proto") {
                    let text = std::fs::read_to_string(&path)
                        .with_context(|| format!("can't read a proto file of {module}"))?;
                    let file =
                        proto::parse(&text).with_context(|| format!("a proto file of {module}"))?;
                    self.packages
                        .insert(file.package, Package::new(folder.clone()));
                    self.messages.extend(file.messages);
                }
            }
        }
        Ok(())
    }

    /// Returns the messages of `kinds`, and all messages that these contain.
    fn messages(
        &mut self,
        later: &mut Self,
        kinds: &BTreeMap<String, Vec<&str>>,
    ) -> Result<BTreeMap<String, Entry>> {
        let mut messages = BTreeMap::new();
        let mut open: Vec<String> = kinds.keys().cloned().collect();
        while let Some(name) = open.pop() {
            if messages.contains_key(&name) {
                continue;
            }
            let (form, rows) = self.merged(later, &name).with_context(|| name.clone())?;
            open.extend(rows.iter().filter_map(|row| row.target.clone()));
            let entry = Entry {
                form,
                is_atomic: false,
                rows,
            };
            messages.insert(name, entry);
        }
        Ok(messages)
    }

    /// Returns the JSON format of the message `name`, and one row per field.
    ///
    /// `self` and `later` contain the messages of two Kubernetes releases. A field that only the later
    /// release contains gets a row that is marked as added, after the row of the field that precedes it in that
    /// release. If only the later release contains the message, no row is marked.
    fn merged(&mut self, later: &mut Self, name: &str) -> Result<(&'static str, Vec<Row>)> {
        if !self.messages.contains_key(name) {
            return later.message(name);
        }
        let (form, mut rows) = self.message(name)?;
        if !later.messages.contains_key(name) {
            return Ok((form, rows));
        }
        let mut next = 0;
        for mut row in later.message(name)?.1 {
            let [number, ..] = &row.cells;
            if let Some(at) = rows.iter().position(|known| known.cells[0] == *number) {
                next = at + 1;
            } else {
                row.is_added = true;
                rows.insert(next, row);
                next += 1;
            }
        }
        Ok((form, rows))
    }

    /// Returns the JSON format of the message `name`, such as `object` or `time`, and one row per field.
    ///
    /// There are no rows for a format without fields, such as `time`.
    fn message(&mut self, name: &str) -> Result<(&'static str, Vec<Row>)> {
        let fields = self.messages.get(name).context("no proto file has it")?;
        let (package, type_name) = name.rsplit_once('.').context("a name without a package")?;
        let package = self
            .packages
            .get_mut(package)
            .context("a message without a package")?;
        let own = FORMS.iter().find(|(known, _)| *known == name);
        ensure!(
            own.is_some() || !package.writes_json(type_name)?,
            "a method MarshalJSON, and no form in this table"
        );
        if package.is_list(type_name)? {
            let [only] = &fields[..] else {
                bail!("a list with more than its items");
            };
            return Ok(("list", vec![Row::new(only, &only.name, "always")?]));
        }
        match own {
            Some((_, form)) if *form != EITHER => Ok((form, Vec::new())),
            _ => {
                let form = own.map_or("object", |(_, form)| form);
                let tags = package.fields(type_name)?;
                let mut rows = rows(fields, &tags)?;
                for row in &mut rows {
                    row.add_go_type(name, &tags, package)?;
                }
                for row in &mut rows {
                    if self.is_absent_list(row)? {
                        "nullable".clone_into(&mut row.cells[3]);
                    }
                }
                Ok((form, rows))
            }
        }
    }

    /// Returns whether Go writes `null` to JSON for the field in `row` if the protobuf bytes do not contain
    /// the field.
    ///
    /// Go does so for fields that have a named slice type and are never omitted from JSON. An example is the
    /// field `verbs` of an `APIResource`.
    fn is_absent_list(&mut self, row: &Row) -> Result<bool> {
        let [_, _, value, presence] = &row.cells;
        let Some(target) = row.target.as_ref().filter(|target| *target == value) else {
            return Ok(false);
        };
        let Some((package, type_name)) = target.rsplit_once('.') else {
            return Ok(false);
        };
        let package = self.packages.get_mut(package);
        let package = package.context("a field of an unknown package")?;
        Ok(presence == "always" && package.is_list(type_name)?)
    }
}

/// A row of the generated table, which describes one field of a protobuf message.
///
/// `target` is the message type of the field, if any.
struct Row {
    cells: [String; 4],
    /// Type of the field in Go, or empty if the type in the proto file determines it.
    go_type: String,
    /// Extensions of the field in the OpenAPI documents.
    words: Vec<String>,
    /// Whether only the later release has the field.
    is_added: bool,
    target: Option<String>,
}

impl Row {
    fn new(field: &ProtoField, json_name: &str, presence: &str) -> Result<Row> {
        let inner = field.inner();
        let target = (!SCALARS.contains(&inner)).then(|| inner.to_owned());
        ensure!(
            target.as_ref().is_none_or(|name| name.contains('.')),
            "unsupported scalar type: {inner}"
        );
        let number = field.number.to_string();
        let cells = [
            number,
            json_name.to_owned(),
            field.value.clone(),
            presence.to_owned(),
        ];
        Ok(Row {
            cells,
            go_type: String::new(),
            words: Vec::new(),
            is_added: false,
            target,
        })
    }

    /// Returns the row as a line of the table.
    fn text(&self) -> String {
        let mut columns = self.cells.clone().to_vec();
        columns.push(self.go_type.clone());
        let added = self.is_added.then(|| "added".to_owned());
        let words = self.words.iter().cloned().chain(added);
        columns.push(words.collect::<Vec<_>>().join(" "));
        columns.join("\t").trim_end_matches('\t').to_owned()
    }

    /// Sets the type in Go of a field of the message `name`, whose struct has the fields `tags`.
    fn add_go_type(
        &mut self,
        name: &str,
        tags: &BTreeMap<u32, GoField>,
        package: &mut Package,
    ) -> Result<()> {
        let [number, _, value, presence] = &self.cells;
        let own = name.rsplit('.').nth(1).unwrap_or_default();
        let shown = package.type_of(own, &tags[&number.parse()?])?;
        if presence != "inline" && shown != expected_go_type(value) {
            self.go_type = shown;
        }
        Ok(())
    }
}

/// Returns the type in Go that most fields with this type in the table have.
fn expected_go_type(value: &str) -> String {
    if let Some(item) = value.strip_prefix("[]") {
        return format!("[]{}", expected_go_type(item));
    }
    if let Some(item) = value.strip_prefix("{}") {
        return format!("map[string]{}", expected_go_type(item));
    }
    match value {
        "bytes" => "[]uint8".to_owned(),
        "double" => "float64".to_owned(),
        _ => {
            let mut parts = value.rsplit('.');
            let name = parts.next().unwrap_or(value);
            let package = parts.next().map(|package| format!("{package}."));
            format!("{}{name}", package.unwrap_or_default())
        }
    }
}

/// Returns the table rows of a message, in the order of the fields of the Go struct, which is their order in JSON.
///
/// `tags` are the fields of the Go struct, by protobuf number.
///
/// # Errors
/// Returns an error if the proto file and the Go struct do not have the same field numbers.
fn rows(fields: &[ProtoField], tags: &BTreeMap<u32, GoField>) -> Result<Vec<Row>> {
    let numbers: BTreeSet<u32> = fields.iter().map(|field| field.number).collect();
    ensure!(
        numbers.iter().eq(tags.keys()),
        "the proto file has the fields {numbers:?}, the struct {:?}",
        tags.keys()
    );
    let mut rows = fields
        .iter()
        .map(|field| {
            let tag = &tags[&field.number];
            // Inlined fields have no name in the tag, so the name in the proto file is used.
            let name = tag.json_name.as_deref().unwrap_or(&field.name);
            let row = Row::new(field, name, tag.presence(field))?;
            Ok((tag.position, row))
        })
        .collect::<Result<Vec<_>>>()?;
    rows.sort_by_key(|(position, _)| *position);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests;
