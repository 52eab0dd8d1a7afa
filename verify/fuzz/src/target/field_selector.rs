//! Fuzz target for field selectors.
//!
//! Formatting a parsed selector must yield a text that parses to an equal selector. The library and the
//! embedded server must reject the same malformed input, and select the same objects.

use std::cell::OnceCell;

use kube_informer::selector::{FieldOperator, FieldRequirement, FieldSelector};
use kube_informer_apiserver::Server;
use serde_json::json;

use crate::{
    asked::{encoded, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "metadata.name=a",
    "metadata.namespace!=n",
    "metadata.name",
    "metadata.namespace",
    "=",
    "==",
    "!=",
    ",",
    "\\",
    "\\,",
    "\\=",
    "\\\\",
    " ",
    "a",
    "n",
    "é",
    "spec.x",
];

/// Namespaces and names of the objects to which each selector is applied.
const OBJECTS: [(&str, &str); 4] = [("n", "a"), ("n", "b"), ("m", "a"), ("m", "c")];

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
}

fn server() -> Server {
    let objects = OBJECTS.map(|(namespace, name)| {
        let metadata = json!({"name": name, "namespace": namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    });
    Server::builder().seed(objects).build()
}

pub(super) fn run(data: &[u8], _bug: Option<Bug>) -> String {
    let Ok(text) = std::str::from_utf8(data) else {
        return "no text".to_owned();
    };
    let server = SERVER.with(|server| server.get_or_init(self::server).clone());
    let asked = |text: &str| {
        get(
            &server,
            &format!("/api/v1/configmaps?fieldSelector={}", encoded(text)),
        )
    };
    let answer = asked(text);
    let selector = match text.parse::<FieldSelector>() {
        Ok(selector) => selector,
        Err(error) => {
            assert_eq!(
                answer.code, 400,
                "the library rejects it ({error}), the server does not"
            );
            return error.to_string().chars().take(17).collect();
        }
    };
    let printed = selector.to_string();
    assert_eq!(
        printed.parse().as_ref(),
        Ok(&selector),
        "it prints {printed:?}"
    );
    let fields = selector.requirements().iter().map(FieldRequirement::field);
    let are_known = fields
        .clone()
        .all(|field| ["metadata.name", "metadata.namespace"].contains(&field));
    assert_eq!(answer.code == 200, are_known, "{}", answer.json["message"]);
    if !are_known {
        return "an unknown field".to_owned();
    }
    let selected = OBJECTS.iter().filter(|object| matches(&selector, object));
    let mut here: Vec<_> = selected
        .map(|(namespace, name)| format!("{namespace}/{name}"))
        .collect();
    here.sort_unstable();
    for answer in [answer, asked(&printed)] {
        let text = |item: &serde_json::Value, member: &str| {
            item["metadata"][member]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let items = answer.items().iter();
        let there: Vec<_> = items
            .map(|item| format!("{}/{}", text(item, "namespace"), text(item, "name")))
            .collect();
        assert_eq!(
            here, there,
            "library and server select different objects with {printed:?}"
        );
    }
    format!(
        "{} requirements select {}",
        fields.count().min(3),
        here.len()
    )
}

fn matches(selector: &FieldSelector, (namespace, name): &(&str, &str)) -> bool {
    selector.requirements().iter().all(|requirement| {
        let value = if requirement.field() == "metadata.name" {
            name
        } else {
            namespace
        };
        let is_equal = requirement.value() == *value;
        (requirement.operator() == FieldOperator::Equals) == is_equal
    })
}
