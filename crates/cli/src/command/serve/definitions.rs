//! Installs the `CustomResourceDefinition`s of `serve --crd`.
//!
//! Guarantees:
//! - all files are read and parsed before the server starts;
//! - a definition that is already stored is replaced, if it differs.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use kube_informer_apiserver::Server;
use serde_json::Value;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";
const PLURAL: &str = "customresourcedefinitions";

/// A definition, and the file that contains it.
#[derive(Debug)]
pub(super) struct Definition {
    object: Value,
    file: PathBuf,
}

/// Reads the definitions in YAML or JSON files. A file can contain several definitions.
pub(super) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Definition>> {
    let mut definitions = Vec::new();
    for file in files {
        let shown = file.display();
        let text = fs::read_to_string(file).map_err(|error| {
            anyhow!("can't read the definitions {shown}: {error}; name another file with --crd")
        })?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| shown.to_string())?;
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            let (api_version, kind) = (&object["apiVersion"], &object["kind"]);
            ensure!(
                *api_version == API_VERSION && *kind == KIND,
                "{shown}: an object has the apiVersion {api_version} and the kind {kind}; --crd accepts only {KIND} of {API_VERSION}"
            );
            definitions.push(Definition {
                object,
                file: file.clone(),
            });
        }
    }
    Ok(definitions)
}

/// Stores the definitions on the server, and returns the names of their resources.
pub(super) fn install(
    server: &Server,
    definitions: Vec<Definition>,
) -> anyhow::Result<Vec<String>> {
    let install = |definition: Definition| {
        let name = definition.name().to_owned();
        let stored = server.get(API_VERSION, PLURAL, &name);
        let written = match stored {
            None => server.create(definition.object),
            Some(stored) => server.update(replaced(stored, &definition.object)),
        };
        let file = definition.file.display();
        written.map_err(|error| anyhow!("{file}: {error}"))?;
        Ok(name)
    };
    definitions.into_iter().map(install).collect()
}

impl Definition {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// Returns the stored definition with the desired state of `new`. Labels and annotations of others are kept.
fn replaced(mut stored: Value, new: &Value) -> Value {
    stored["spec"] = new["spec"].clone();
    for member in ["labels", "annotations"] {
        let given = new["metadata"][member].as_object();
        for (name, value) in given.into_iter().flatten() {
            stored["metadata"][member][name] = value.clone();
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_definitions_are_accepted() {
        let file = std::env::temp_dir().join(format!("crd-{}.yaml", std::process::id()));
        let read_text = |text: &str| {
            fs::write(&file, text).unwrap();
            read(std::slice::from_ref(&file))
        };
        let two = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n---\n---\n{\"apiVersion\": \"apiextensions.k8s.io/v1\", \"kind\": \"CustomResourceDefinition\"}\n";
        assert_eq!(read_text(two).unwrap().len(), 2);
        let error = read_text("apiVersion: v1\nkind: Pod\n").unwrap_err();
        assert!(
            error.to_string().ends_with(
                "an object has the apiVersion \"v1\" and the kind \"Pod\"; --crd accepts only CustomResourceDefinition of apiextensions.k8s.io/v1"
            ),
            "{error}"
        );
        let error = format!("{:#}", read_text("a: [").unwrap_err());
        assert!(error.contains("line 1"), "{error}");
        fs::remove_file(&file).unwrap();
        let error = read(std::slice::from_ref(&file)).unwrap_err();
        assert!(error.to_string().ends_with("name another file with --crd"));
    }

    #[test]
    fn an_installed_definition_is_replaced_only_if_it_differs() {
        let server = Server::builder().build();
        let install_with = |columns: Value| {
            let schema = json!({"openAPIV3Schema": {"type": "object"}});
            let object = json!({
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {"name": "widgets.example.com"},
                "spec": {
                    "group": "example.com",
                    "scope": "Namespaced",
                    "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": schema,
                        "additionalPrinterColumns": columns,
                    }],
                },
            });
            let file = PathBuf::from("a.yaml");
            install(&server, vec![Definition { object, file }]).unwrap()
        };
        assert_eq!(install_with(json!(null)), ["widgets.example.com"]);
        let label = json!({"metadata": {"labels": {"team": "a"}}});
        let labelled = server.patch(API_VERSION, PLURAL, "widgets.example.com", label);
        let before = labelled.unwrap()["metadata"]["resourceVersion"].clone();
        let stored = || {
            let stored = server.get(API_VERSION, PLURAL, "widgets.example.com");
            stored.unwrap()
        };
        install_with(json!(null));
        assert_eq!(stored()["metadata"]["resourceVersion"], before);
        install_with(json!([{"name": "A", "type": "string", "jsonPath": ".a"}]));
        assert_ne!(stored()["metadata"]["resourceVersion"], before);
        assert_eq!(stored()["metadata"]["labels"], json!({"team": "a"}));
    }
}
