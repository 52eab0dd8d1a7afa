//! Tests the parts of the OpenAPI documents that `kubectl` reads for `apply`, `patch` and `explain`.

use std::collections::BTreeSet;

use http_body_util::Full;
use serde_json::{Value, json};

use kube_informer_apiserver::{Kind, Kinds, Scope, Server};

use crate::ask::{builder, get, request, send, with};

/// Adds the target of each `$ref` in `value` to `found`.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            // In a schema of JSON schemas, `$ref` is a property and not a reference.
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                found.insert(target.to_owned());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn every_group_version_has_a_document_without_broken_references() {
    let server = builder().build();
    let index = get(&server, "/openapi/v3").await.json;
    let mut expected: Vec<String> = Kinds::builtin()
        .iter()
        .map(|kind| match kind.group.as_str() {
            "" => format!("api/{}", kind.version),
            group => format!("apis/{group}/{}", kind.version),
        })
        .collect();
    expected.dedup();
    let paths = index["paths"].as_object().unwrap();
    assert_eq!(
        paths.keys().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    for place in paths.values() {
        let url = place["serverRelativeURL"].as_str().unwrap();
        let document = get(&server, url).await.json;
        assert_eq!(document["openapi"], "3.0.0", "{url}");
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{url}: {reference}");
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let unused: Vec<_> = schemas
            .keys()
            .filter(|name| !found.contains(&format!("#/components/schemas/{name}")))
            .collect();
        assert_eq!(unused, [""; 0], "{url}");
    }
    for nowhere in ["/openapi/v3/api/v2", "/openapi/v3/apis/none/v1"] {
        assert_eq!(get(&server, nowhere).await.code, 404, "{nowhere}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_with_the_hash_of_its_document_is_final() {
    let server = builder().build();
    let url_of = async || {
        let index = get(&server, "/openapi/v3").await.json;
        let url = &index["paths"]["apis/apiextensions.k8s.io/v1"]["serverRelativeURL"];
        url.as_str().unwrap().to_owned()
    };
    let url = url_of().await;
    let (path, hash) = url.split_once("?hash=").unwrap();
    let document = get(&server, &url).await;
    assert_eq!(document.headers["etag"], format!("\"{hash}\""));
    assert_eq!(
        document.headers["cache-control"],
        "public, immutable, max-age=31536000"
    );
    for other in [path.to_owned(), format!("{path}?hash=0")] {
        let again = get(&server, &other).await;
        assert_eq!(again.headers["cache-control"], "no-cache, private");
        assert_eq!(again.text, document.text);
    }
    let conditional = request("GET", path).header("if-none-match", format!("\"{hash}\""));
    let known = send(&server, conditional.body(Full::default()).unwrap()).await;
    assert_eq!((known.code, known.text.as_str()), (304, ""));
    assert_eq!(url_of().await, url, "the hash of an unchanged document");

    let document = get(&server, "/openapi/v2").await;
    let hash = document.headers["etag"].to_str().unwrap().trim_matches('"');
    let again = get(&server, &format!("/openapi/v2?hash={hash}")).await;
    assert_eq!(again.headers["cache-control"], "no-cache, private");
}

#[tokio::test(start_paused = true)]
async fn documents_declare_field_validation_and_patch_types() {
    let server = builder().build();
    let apps = get(&server, "/openapi/v3/apis/apps/v1").await.json;
    let deployments = "/apis/apps/v1/namespaces/{namespace}/deployments";
    let object = format!("{deployments}/{{name}}");
    let parameters = |operation: &Value| -> Vec<String> {
        let all = operation["parameters"].as_array().into_iter().flatten();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let writes = [
        &apps["paths"][deployments]["post"],
        &apps["paths"][&object]["put"],
        &apps["paths"][&object]["patch"],
    ];
    let gvk = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    for write in writes {
        let all = ["dryRun", "fieldManager", "fieldValidation", "force"];
        let is_patch = write["x-kubernetes-action"] == "patch";
        assert_eq!(parameters(write), all[..3 + usize::from(is_patch)]);
        assert_eq!(write["x-kubernetes-group-version-kind"], gvk);
    }
    assert_eq!(parameters(&apps["paths"][&object]), ["name", "namespace"]);
    assert_eq!(apps["paths"][&object]["get"]["parameters"], Value::Null);
    let patch = &apps["paths"][&object]["patch"]["requestBody"]["content"];
    assert_eq!(
        patch.as_object().unwrap().keys().collect::<Vec<_>>(),
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json"
        ]
    );
    let scale = &apps["paths"][format!("{object}/scale")]["put"];
    assert_eq!(
        scale["x-kubernetes-group-version-kind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    // Reviews can only be created. Namespaces can't be deleted as a collection.
    let reviews = get(&server, "/openapi/v3/apis/authorization.k8s.io/v1")
        .await
        .json;
    let place = &reviews["paths"]["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"];
    assert_eq!(
        place.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["post"]
    );
    let core = get(&server, "/openapi/v3/api/v1").await.json;
    assert_eq!(core["paths"]["/api/v1/namespaces"]["delete"], Value::Null);
    assert!(core["paths"]["/api/v1/pods"]["get"].is_object());
    assert_eq!(core["paths"]["/api/v1/pods"]["post"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn schemas_have_the_types_and_patch_strategies_of_the_fields() {
    let server = builder().build();
    let apps = get(&server, "/openapi/v3/apis/apps/v1").await.json;
    let schema = |name: &str| &apps["components"]["schemas"][name];
    assert_eq!(
        schema("io.k8s.api.apps.v1.Deployment")["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    let spec = &schema("io.k8s.api.apps.v1.DeploymentSpec")["properties"];
    assert_eq!(
        spec["replicas"],
        json!({"type": "integer", "format": "int32"})
    );
    assert_eq!(
        schema("io.k8s.api.apps.v1.DeploymentSpec")["required"],
        json!(["selector", "template"])
    );
    assert_eq!(
        spec["strategy"],
        json!({
            "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
            "x-kubernetes-patch-strategy": "retainKeys",
        })
    );
    let pod = &schema("io.k8s.api.core.v1.PodSpec")["properties"];
    assert_eq!(
        pod["containers"],
        json!({
            "type": "array",
            "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]},
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        })
    );
    assert_eq!(
        pod["nodeSelector"],
        json!({
            "type": "object",
            "additionalProperties": {"type": "string"},
            "x-kubernetes-map-type": "atomic",
        })
    );
    let selector = schema("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector");
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_a_custom_kind_has_only_its_name() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Cluster);
    let server = builder().kind(kind).build();
    let document = get(&server, "/openapi/v3/apis/example.com/v1").await.json;
    let gvk = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    assert_eq!(
        document["components"]["schemas"]["com.example.v1.Widget"],
        json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [gvk],
        })
    );
    let patch = &document["paths"]["/apis/example.com/v1/widgets/{name}"]["patch"];
    let content = &patch["requestBody"]["content"];
    assert!(content["application/merge-patch+json"].is_object());
    assert_eq!(
        content["application/strategic-merge-patch+json"],
        Value::Null
    );
}

/// Returns the document at `/openapi/v2`, after a check of its references.
async fn version_2(server: &Server) -> Value {
    let document = get(server, "/openapi/v2").await.json;
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    document
}

#[tokio::test(start_paused = true)]
async fn version_2_has_all_groups_with_definitions_and_body_parameters() {
    let server = builder().build();
    let document = version_2(&server).await;
    let definitions = &document["definitions"];
    let deployment = &definitions["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["properties"]["spec"],
        json!({"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"})
    );
    let pod = &definitions["io.k8s.api.core.v1.PodSpec"];
    assert_eq!(pod["required"], json!(["containers"]));
    let probe = &definitions["io.k8s.api.core.v1.HTTPGetAction"]["properties"];
    assert_eq!(
        probe["port"],
        json!({"type": "string", "format": "int-or-string"})
    );
    let create = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
    let body = json!({"$ref": "#/definitions/io.k8s.api.core.v1.Pod"});
    assert_eq!(
        create["parameters"][0],
        json!({"name": "body", "in": "body", "required": true, "schema": body})
    );
    assert_eq!(create["parameters"][1]["type"], "string");
    assert_eq!(create["responses"]["200"]["schema"], body);
    assert_eq!(
        create["x-kubernetes-group-version-kind"],
        json!({"group": "", "version": "v1", "kind": "Pod"})
    );
}

#[tokio::test(start_paused = true)]
async fn version_2_follows_definitions() {
    let server = builder().build();
    let before = get(&server, "/openapi/v2").await;
    let name = "/definitions/com.example.v1.Gadget";
    assert_eq!(before.json.pointer(name), None);
    let mut version = json!({"name": "v1", "served": true, "storage": true});
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "nullable": true}}},
        "size": {"type": "integer", "default": 1}}});
    version["selectableFields"] = json!([{"jsonPath": ".size"}]);
    let names = json!({"plural": "gadgets", "kind": "Gadget"});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    });
    server.create(definition).unwrap();
    let after = version_2(&server).await;
    let gadget = after.pointer(name).unwrap();
    assert_eq!(
        gadget["properties"]["spec"],
        json!({"type": "object", "properties": {"a": {}}})
    );
    assert_eq!(gadget["properties"]["size"], json!({"type": "integer"}));
    assert_eq!(
        gadget["x-kubernetes-selectable-fields"],
        json!([{"fieldPath": "size"}])
    );
    assert_eq!(
        gadget["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );

    // A description changes no kind.
    let schema = "/spec/versions/0/schema/openAPIV3Schema/description";
    let described = json!([{"op": "add", "path": schema, "value": "A tool."}]);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com";
    let patched = with(&server, "PATCH", path, &described).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    let after = version_2(&server).await;
    assert_eq!(after.pointer(name).unwrap()["description"], "A tool.");
}
