//! Generates the embedded server's table of printer columns from the Go sources of Kubernetes.
//!
//! The columns of most kinds are in `printers.go`, those of `APIService` in the aggregator, and those of kinds
//! without a printer in the generic API server. A description is a text, or the documentation of a field, which
//! is in the generated Go files `types_swagger_doc_generated.go`. A source of another form is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::wire::Sources;

/// Path of the printers in the module of Kubernetes.
const PRINTERS: &str = "pkg/printers/internalversion/printers.go";

/// Path of the printer of `APIService` in the module of the aggregator.
const API_SERVICE: &str = "pkg/registry/apiservice/etcd/etcd.go";

/// Path of the columns of kinds without a printer, in the module of the generic API server.
const GENERIC: &str = "pkg/registry/rest/table.go";

/// A kind that has a printer, but whose storage has the columns of a kind without one.
const WITHOUT_PRINTER: &str = "CSIStorageCapacity";

/// The folders of the Go modules with the columns.
pub(super) struct Modules<'a> {
    pub(super) kubernetes: &'a Path,
    pub(super) apiserver: &'a Path,
    /// The modules with the types, whose fields have documentation.
    pub(super) types: &'a Sources,
}

/// Columns by the name of their Go variable, each as the text of its fields.
type Definitions = BTreeMap<String, Vec<String>>;

/// The documentation of fields that columns name, by Go type and field.
#[derive(Default)]
struct Documentation {
    /// The Go import paths of package aliases.
    imports: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
}

/// Returns the text of the table of columns for the kinds with these names.
pub(super) fn table(
    module: &str,
    modules: &Modules<'_>,
    served: &BTreeSet<String>,
) -> Result<String> {
    let printers = read(&modules.kubernetes.join(PRINTERS))?;
    let aggregator = read(
        &modules
            .types
            .folder("k8s.io/kube-aggregator")?
            .join(API_SERVICE),
    )?;
    let generic = read(&modules.apiserver.join(GENERIC))?;
    let mut documentation = Documentation {
        imports: imports(&printers),
        texts: BTreeMap::new(),
    };
    let mut by_kind: BTreeMap<String, Vec<String>> = BTreeMap::new();
    by_kind.insert("-".to_owned(), all(&generic));
    by_kind.insert("APIService".to_owned(), all(&aggregator));
    let defined = definitions(&printers);
    for (variable, kind) in handlers(&printers)? {
        if served.contains(&kind) && kind != WITHOUT_PRINTER {
            let columns = defined.get(&variable);
            let columns = columns.with_context(|| format!("{PRINTERS} has no {variable}"))?;
            by_kind.insert(kind, columns.clone());
        }
    }
    let mut table = header(module);
    for (kind, columns) in &by_kind {
        ensure!(!columns.is_empty(), "no columns of {kind}");
        writeln!(table, "{kind}").expect("writing to a String does not fail");
        for column in columns {
            let row = documentation
                .row(column, modules.types)
                .with_context(|| format!("a column of {kind}: {column}"))?;
            writeln!(table, "\t{row}").expect("writing to a String does not fail");
        }
    }
    for (field, text) in &documentation.texts {
        writeln!(table, "={field}\t{}", escaped(text)).expect("writing to a String does not fail");
    }
    Ok(table)
}

fn header(module: &str) -> String {
    format!(
        "# Written by `cargo xtask kinds` from {module} ({PRINTERS}) and its modules; do not edit.\n\
         # A line with a name is a kind; `-` is any kind without columns of its own.\n\
         # Lines that start with a tab are its columns: name, type, format, priority, description.\n\
         # A description starts with `=` and names a line at the end, or is a text; `\\n` is a line break.\n"
    )
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

/// Returns the import paths of the package aliases in a Go file.
fn imports(source: &str) -> BTreeMap<String, String> {
    let lines = source.lines().take_while(|line| *line != ")");
    let aliases = lines.filter_map(|line| {
        let (alias, path) = line.trim().split_once(' ')?;
        let path = path.strip_prefix('"')?.strip_suffix('"')?;
        Some((alias.to_owned(), path.to_owned()))
    });
    aliases.collect()
}

/// Returns the columns in a Go file, by variable.
fn definitions(source: &str) -> Definitions {
    let mut found = Definitions::new();
    let mut variable = "";
    for line in source.lines() {
        if line.ends_with("[]metav1.TableColumnDefinition{") {
            variable = line.split_whitespace().next().unwrap_or_default();
        } else if let Some(column) = column(line) {
            let columns = found.entry(variable.to_owned()).or_default();
            columns.push(column.to_owned());
        }
    }
    found
}

/// Returns all columns in a Go file.
fn all(source: &str) -> Vec<String> {
    let columns = source.lines().filter_map(column);
    columns.map(str::to_owned).collect()
}

fn column(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_column = line.starts_with("{Name: \"") && line.contains(" Type: \"");
    line.strip_prefix('{')?
        .strip_suffix("},")
        .filter(|_| is_column)
}

/// Returns the pairs of a variable and the kind of its printer.
fn handlers(source: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for line in source.lines() {
        let Some((_, call)) = line.split_once("h.TableHandler(") else {
            continue;
        };
        let (variable, printer) = call
            .strip_suffix(')')
            .and_then(|arguments| arguments.split_once(", "))
            .with_context(|| format!("a handler of another form: {line}"))?;
        let start = format!("func {printer}(");
        let signature = source.lines().find_map(|line| line.strip_prefix(&start));
        let kind = signature
            .and_then(|rest| rest.split_once(',')?.0.rsplit_once('.'))
            .with_context(|| format!("no function {printer}"))?
            .1;
        found.push((variable.to_owned(), kind.to_owned()));
    }
    Ok(found)
}

/// Returns the value of a quoted member such as `Name: "a"`, or an empty text.
fn member<'a>(column: &'a str, name: &str) -> &'a str {
    let start = format!("{name}: \"");
    let rest = column.split_once(&start).map(|(_, rest)| rest);
    let value = rest.and_then(|rest| rest.split_once('"'));
    value.map_or("", |(value, _)| value)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', " ")
}

// === impl Documentation ===

impl Documentation {
    /// Returns the row of a column, and records the documentation that it names.
    fn row(&mut self, column: &str, types: &Sources) -> Result<String> {
        let priority = column.split_once("Priority: ").map_or("0", |(_, rest)| {
            rest.split_once(',').map_or(rest, |(priority, _)| priority)
        });
        let (_, description) = column
            .split_once("Description: ")
            .context("no description")?;
        let description = if description.starts_with('"') {
            let text: String = serde_json::from_str(description)?;
            escaped(&text)
        } else {
            self.reference(description, types)?
        };
        let row = [
            member(column, "Name"),
            member(column, "Type"),
            member(column, "Format"),
            priority,
            &description,
        ];
        Ok(row.join("\t"))
    }

    /// Returns the reference to the documentation that a Go expression returns; empty if there is none.
    fn reference(&mut self, expression: &str, types: &Sources) -> Result<String> {
        let (value, field) = expression
            .strip_suffix("\"]")
            .and_then(|rest| rest.split_once("[\""))
            .context("a description of another form")?;
        let type_name = match value.strip_suffix("{}.SwaggerDoc()") {
            Some(name) => name,
            None if value == "swaggerMetadataDescriptions" => "metav1.ObjectMeta",
            None if value == "apiv1.Event{}.InvolvedObject.SwaggerDoc()" => "apiv1.ObjectReference",
            None => bail!("a description of another form"),
        };
        let name = format!("{type_name}.{field}");
        if !self.texts.contains_key(&name) {
            let Some(text) = self.text(type_name, field, types)? else {
                return Ok(String::new());
            };
            self.texts.insert(name.clone(), text);
        }
        Ok(format!("={name}"))
    }

    /// Returns the documentation of a field of a Go type, such as `apiv1.PodSpec`.
    fn text(&self, type_name: &str, field: &str, types: &Sources) -> Result<Option<String>> {
        let (alias, name) = type_name.split_once('.').context("a type of no package")?;
        let import = self.imports.get(alias);
        let import = import.with_context(|| format!("no import of {alias}"))?;
        let mut folders = types.modules.iter().filter_map(|(module, folder)| {
            let below = import.strip_prefix(module)?.strip_prefix('/')?;
            Some(folder.join(below).join("types_swagger_doc_generated.go"))
        });
        let file = folders
            .next()
            .with_context(|| format!("no module of {import}"))?;
        let source = read(&file)?;
        let start = format!("var map_{name} = map[string]string{{");
        let mut fields = source.lines().skip_while(|line| *line != start).skip(1);
        let start = format!("\"{field}\":");
        let found = fields
            .by_ref()
            .take_while(|line| *line != "}")
            .find_map(|line| line.trim().strip_prefix(&start)?.trim().strip_suffix(','));
        found
            .map(serde_json::from_str)
            .transpose()
            .context("a text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
	a := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "a \"name\"\nof"},
		// A comment.
		{Name: "Age", Type: "string", Priority: 1, Description: "an age"},
	}
	a = append(a, []metav1.TableColumnDefinition{
		{Name: "Last", Type: "integer", Description: "a number"},
	}...)
	_ = h.TableHandler(a, printThing)
	h.TableHandler(a, printThingList)
func printThing(obj *api.Thing, options printers.GenerateOptions) ([]metav1.TableRow, error) {
func printThingList(list *api.ThingList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
"#;

    #[test]
    fn columns_belong_to_the_kinds_of_their_printers() {
        let owned = |variable: &str, kind: &str| (variable.to_owned(), kind.to_owned());
        let expected = [owned("a", "Thing"), owned("a", "ThingList")];
        assert_eq!(handlers(SOURCE).unwrap(), expected);
        let types = Sources {
            modules: Vec::new(),
        };
        let columns = &definitions(SOURCE)["a"];
        let mut documentation = Documentation::default();
        let rows = columns
            .iter()
            .map(|column| documentation.row(column, &types).unwrap());
        let expected = [
            "Name\tstring\tname\t0\ta \"name\"\\nof",
            "Age\tstring\t\t1\tan age",
            "Last\tinteger\t\t0\ta number",
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
