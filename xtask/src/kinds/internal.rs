//! Generates the embedded server's table of internal types: how Kubernetes shows parts of objects in messages.
//!
//! An error message about a struct contains the JSON of the internal Go type. It has no JSON tags, so its members have
//! the names and the order of the Go fields, and are never left out.
//! The table contains the types in [`ROOTS`], and each type to which these refer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

/// The types that messages show.
const ROOTS: [&str; 2] = ["PersistentVolumeSource", "PodTemplateSpec"];

/// The fields of each struct, in the order of the source text.
type Structs<'a> = BTreeMap<&'a str, Vec<Field<'a>>>;

struct Field<'a> {
    /// Name of the member in JSON. Empty if the members of the struct are those of its parent.
    name: &'a str,
    go_type: &'a str,
    omits_empty: bool,
}

/// Returns the text of the table, given the source texts of the internal types and of the types of metadata.
pub(super) fn table(module: &str, core: &str, metadata: &str) -> Result<String> {
    let mut structs = structs(core);
    for (name, fields) in self::structs(metadata) {
        structs.entry(name).or_insert(fields);
    }
    let mut aliases = aliases(core);
    aliases.extend(self::aliases(metadata));
    let mut table = header(module);
    let mut open = ROOTS.to_vec();
    let mut known: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(name) = open.pop() {
        let fields = structs
            .get(name)
            .with_context(|| format!("no struct {name}"))?;
        writeln!(table, "{name}").expect("writing to a String does not fail");
        for field in fields {
            let (shape, target) = shape(field, &structs, &aliases)
                .with_context(|| format!("{name}.{}", field.name))?;
            let mark = if field.omits_empty { "?" } else { "" };
            writeln!(table, "\t{}{mark}\t{shape}", field.name)
                .expect("writing to a String does not fail");
            open.extend(target.filter(|target| known.insert(target)));
        }
    }
    Ok(table)
}

fn header(module: &str) -> String {
    format!(
        "# Written by `cargo xtask kinds` from {module} (pkg/apis/core/types.go) and the types of metadata; do not edit.\n\
         # A line that starts with a name is a struct. Lines that start with a tab are its fields: name, tab, type.\n\
         # A type is the JSON of its zero value, or the name of a struct, after `*` for one that can be null and `[]` for a list.\n\
         # `?`: the member is left out if it has no value. A field without a name has its members in the parent.\n"
    )
}

/// Returns the type of a field in the table, and the struct to which it refers.
fn shape<'a>(
    field: &Field<'a>,
    structs: &Structs<'a>,
    aliases: &BTreeMap<&'a str, &'a str>,
) -> Result<(String, Option<&'a str>)> {
    let go_type = field.go_type;
    let base = go_type.trim_start_matches(['*', '[', ']']);
    let prefix = &go_type[..go_type.len() - base.len()];
    let base = base.strip_prefix("metav1.").unwrap_or(base);
    if field.omits_empty && !structs.contains_key(base) {
        return Ok(("null".to_owned(), None));
    }
    if structs.contains_key(base) && ["", "*", "[]"].contains(&prefix) {
        return Ok((format!("{prefix}{base}"), Some(base)));
    }
    let base = aliases.get(base).copied().unwrap_or(base);
    let zero = match base {
        _ if !prefix.is_empty() || base.starts_with("map[") => "null",
        "string" | "types.UID" => "\"\"",
        "bool" => "false",
        "int32" | "int64" | "intstr.IntOrString" => "0",
        "resource.Quantity" => "\"0\"",
        _ => bail!("unsupported type {go_type}"),
    };
    Ok((zero.to_owned(), None))
}

/// Returns the structs of a source text that has the format of gofmt.
fn structs(text: &str) -> Structs<'_> {
    let mut structs = Structs::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("type ");
        if let Some(name) = name.and_then(|line| line.strip_suffix(" struct {")) {
            let fields = lines.by_ref().take_while(|line| *line != "}");
            structs.insert(name, fields.filter_map(field).collect());
        }
    }
    structs
}

fn field(line: &str) -> Option<Field<'_>> {
    let code = line.split("//").next().unwrap_or_default().trim();
    let (declared, tags) = code.split_once('`').unwrap_or((code, ""));
    let mut words = declared.split_whitespace();
    let first = words.next()?;
    let tag = tags
        .strip_prefix("json:\"")
        .and_then(|tag| tag.split('"').next());
    let json_name = tag.and_then(|tag| tag.split(',').next());
    let json_name = json_name.filter(|name| !name.is_empty());
    let omits_empty = tag.is_some_and(|tag| tag.contains("omit"));
    let (name, go_type) = match words.next() {
        Some(go_type) => (json_name.unwrap_or(first), go_type),
        None => ("", first),
    };
    Some(Field {
        name,
        go_type,
        omits_empty,
    })
}

/// Returns the names of the types that are defined by another type, such as `type Protocol string`.
fn aliases(text: &str) -> BTreeMap<&str, &str> {
    let definitions = text.lines().filter_map(|line| {
        let (name, go_type) = line.strip_prefix("type ")?.split_once(' ')?;
        (!go_type.contains(' ')).then_some((name, go_type))
    });
    definitions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &str = "type PersistentVolumeSource struct {\n\tNFS *Port\n}\n\ntype PodTemplateSpec struct {\n\tmetav1.ObjectMeta\n\t// Comment.\n\tSpec PodSpec\n}\n\ntype PodSpec struct {\n\tName  Name // comment\n\tGrace *int64\n\tPorts []Port\n}\n\ntype Name string\n\ntype Port struct {\n\tTarget intstr.IntOrString\n}\n";

    const METADATA: &str = "type ObjectMeta struct {\n\tName string `json:\"name,omitempty\" protobuf:\"bytes,1,opt,name=name\"`\n}\n";

    #[test]
    fn each_reachable_struct_has_its_fields_with_their_zero_values() {
        let table = table("m", CORE, METADATA).unwrap();
        let rows: Vec<&str> = super::super::rows(&table).collect();
        assert_eq!(
            rows,
            [
                "PodTemplateSpec",
                "\t\tObjectMeta",
                "\tSpec\tPodSpec",
                "PodSpec",
                "\tName\t\"\"",
                "\tGrace\tnull",
                "\tPorts\t[]Port",
                "Port",
                "\tTarget\t0",
                "ObjectMeta",
                "\tname?\tnull",
                "PersistentVolumeSource",
                "\tNFS\t*Port",
            ]
        );
    }

    #[test]
    fn a_field_of_an_unknown_type_is_an_error() {
        let core = CORE.replace("intstr.IntOrString", "other.Type");
        let error = table("m", &core, METADATA).unwrap_err();
        assert_eq!(error.to_string(), "Port.Target");
    }
}
