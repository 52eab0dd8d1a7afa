//! Tests reads from a cache by name, namespace, labels and fields.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

use super::*;
use crate::indexer::{self, IndexerWriter, Indexers};

type K = ConfigMap;

fn map(name: &ObjectName, labels: &[(&str, &str)]) -> K {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.name().to_owned()),
            namespace: name.namespace().map(str::to_owned),
            labels: Some(labels.collect()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn lister() -> (Lister<K>, IndexerWriter<K>) {
    let (indexer, writer) = indexer::new(Indexers::new()).unwrap();
    (Lister::new(indexer, "ConfigMap"), writer)
}

fn names(objects: impl Iterator<Item = Object<K>>) -> String {
    let names: Vec<_> = objects.map(|object| object.object_name().clone()).collect();
    format!("{names:?}")
}

fn selector(text: &str) -> Selector {
    text.parse().unwrap()
}

#[test]
fn objects_are_listed_by_labels_in_all_namespaces_or_in_one() {
    let (lister, mut writer) = lister();
    for (name, app) in [
        ("shop/web", "web"),
        ("shop/db", "db"),
        ("shop-b/web", "web"),
        ("top", "web"),
    ] {
        let name: ObjectName = name.parse().unwrap();
        writer.add(map(&name, &[("app", app)])).unwrap();
    }
    let everything = Selector::default();
    let (web, none) = (selector("app=web"), selector("app=mail"));
    let nothing = Selector::nothing();
    let all = "[top, shop/db, shop/web, shop-b/web]";
    assert_eq!(names(lister.list(&everything)), all);
    assert_eq!(names(lister.list(&web)), "[top, shop/web, shop-b/web]");
    assert_eq!(names(lister.list(&none)), "[]");
    assert_eq!(names(lister.list(&nothing)), "[]");

    let shop = lister.namespace("shop");
    assert_eq!(names(shop.list(&everything)), "[shop/db, shop/web]");
    assert_eq!(names(shop.list(&web)), "[shop/web]");
    assert_eq!(names(shop.list(&nothing)), "[]");
    let nowhere = lister.namespace("sho");
    assert_eq!(names(nowhere.list(&everything)), "[]");
    let anywhere = lister.namespace("");
    assert_eq!(names(anywhere.list(&everything)), all);
}

#[test]
fn a_missing_object_is_an_error_with_kind_and_name() {
    let (lister, mut writer) = lister();
    let [web, top] = ["shop/web", "top"].map(|name| name.parse::<ObjectName>().unwrap());
    writer.add(map(&web, &[])).unwrap();
    writer.add(map(&top, &[])).unwrap();
    let shop = lister.namespace("shop");
    assert_eq!(
        shop.get("web").unwrap().metadata.name.as_deref(),
        Some("web")
    );
    assert!(Arc::ptr_eq(
        &shop.get("web").unwrap(),
        &lister.get(&web).unwrap()
    ));
    assert_eq!(
        lister.get(&top).unwrap().metadata.name.as_deref(),
        Some("top")
    );

    let error = shop.get("db").unwrap_err();
    assert_eq!(error.to_string(), "ConfigMap shop/db not found");
    let GetError::NotFound { kind, name } = error else {
        panic!("{error}");
    };
    assert_eq!((kind.as_str(), name.as_str()), ("ConfigMap", "shop/db"));
    let error = lister.get(&ObjectName::cluster("web")).unwrap_err();
    assert_eq!(error.to_string(), "ConfigMap web not found");
    assert!(shop.get("top").is_err() && shop.find("top").is_none());
    assert!(lister.find(&top).is_some());
}

#[test]
fn a_list_shows_one_snapshot_while_the_cache_changes() {
    let (lister, mut writer) = lister();
    for name in ["a", "b", "c"] {
        writer.add(map(&ObjectName::cluster(name), &[])).unwrap();
    }
    let everything = Selector::default();
    let mut list = lister.list(&everything);
    assert_eq!(list.next().unwrap().name(), "a");
    writer.delete(&ObjectName::cluster("b"));
    writer.add(map(&ObjectName::cluster("d"), &[])).unwrap();
    assert_eq!(names(list), "[b, c]");
    assert_eq!(names(lister.list(&everything)), "[a, c, d]");
}

#[test]
fn a_tenth_of_a_hundred_thousand_objects_is_listed_by_a_label() {
    const ALL: usize = 100_000;
    let (lister, mut writer) = lister();
    let maps = (0..ALL).map(|n| {
        let name = ObjectName::namespaced(&format!("ns-{}", n % 10), &format!("map-{n}"));
        let tier = if n % 100 < 10 { "front" } else { "back" };
        map(&name, &[("tier", tier)])
    });
    writer.replace(maps, 1).unwrap();
    let count = |selector: &Selector| lister.list(selector).count();
    assert_eq!(count(&selector("tier=front")), ALL / 10);
    assert_eq!(count(&Selector::default()), ALL);
    assert_eq!(count(&Selector::nothing()), 0);
    let namespace = lister.namespace("ns-3");
    let front = selector("tier=front");
    assert_eq!(namespace.list(&front).count(), ALL / 100);
    assert!(
        namespace
            .list(&front)
            .all(|map| map.namespace() == Some("ns-3"))
    );
}

#[test]
fn objects_are_listed_by_indexed_fields_and_by_labels() {
    let data = |map: &K| map.data.as_ref()?.get("node").cloned();
    let indexers = Indexers::new().with("data.node", data);
    let (indexer, mut writer) = indexer::new(indexers).unwrap();
    let lister = Lister::new(indexer, "ConfigMap");
    for (name, app, node) in [
        ("shop/a", "web", "n1"),
        ("shop/b", "web", "n2"),
        ("shop/c", "db", "n1"),
        ("till/a", "web", "n1"),
    ] {
        let name: ObjectName = name.parse().unwrap();
        let mut map = map(&name, &[("app", app)]);
        map.data = Some([("node".to_owned(), node.to_owned())].into());
        writer.add(map).unwrap();
    }
    let everything = Selector::everything();
    let on = |node: &str| FieldSelector::equals("data.node", node);
    let all = |fields| names(lister.list_by_fields(&everything, &fields).unwrap());
    assert_eq!(all(on("n1")), "[shop/a, shop/c, till/a]");
    assert_eq!(
        all(FieldSelector::everything()),
        "[shop/a, shop/b, shop/c, till/a]"
    );
    let web = selector("app=web");
    let found = lister.list_by_fields(&web, &on("n1")).unwrap();
    writer.replace([], 9).unwrap();
    assert_eq!(names(found), "[shop/a, till/a]", "all from one snapshot");

    let name = ObjectName::namespaced("shop", "a");
    writer.add(map(&name, &[("app", "web")])).unwrap();
    writer.add(map(&ObjectName::cluster("top"), &[])).unwrap();
    let not_n1 = FieldSelector::not_equals("data.node", "n1");
    for (namespace, expected) in [("shop", "[shop/a]"), ("till", "[]"), ("", "[top, shop/a]")] {
        let in_one = lister.namespace(namespace);
        let found = in_one.list_by_fields(&everything, &not_n1).unwrap();
        assert_eq!(names(found), expected, "{namespace:?}");
    }
    let phase = FieldSelector::equals("status.phase", "Running");
    let unknown = FieldNotIndexed("status.phase".to_owned());
    let error = lister.list_by_fields(&everything, &phase).err();
    assert_eq!(error, Some(unknown.clone()));
    let in_one = lister.namespace("shop");
    let error = in_one.list_by_fields(&everything, &phase).err();
    assert_eq!(error, Some(unknown));
}

#[test]
fn a_list_of_several_slices_has_each_object_once_and_in_order() {
    let (indexer, mut writer) =
        indexer::new(Indexers::new().with_label("parity", "parity")).unwrap();
    let lister = Lister::new(indexer, "ConfigMap");
    let name =
        |namespace: &str, number| ObjectName::namespaced(namespace, &format!("map-{number:03}"));
    for (number, namespace) in (0..200).flat_map(|number| [(number, "a"), (number, "b")]) {
        let parity = if number % 2 == 0 { "even" } else { "odd" };
        let labels = [
            ("parity", parity),
            ("half", if number < 100 { "first" } else { "second" }),
        ];
        writer.add(map(&name(namespace, number), &labels)).unwrap();
    }
    let expected = |namespaces: &[&str], is_in: fn(&u32) -> bool| {
        let of = |namespace: &&str| {
            let names: Vec<_> = (0..200)
                .filter(is_in)
                .map(|number| name(namespace, number))
                .collect();
            names
        };
        format!("{:?}", namespaces.iter().flat_map(of).collect::<Vec<_>>())
    };
    let everything = Selector::default();
    assert_eq!(
        names(lister.list(&everything)),
        expected(&["a", "b"], |_| true)
    );
    let a = lister.namespace("a");
    assert_eq!(names(a.list(&everything)), expected(&["a"], |_| true));
    // The first slices contain no such object.
    let second = selector("half=second");
    assert_eq!(
        names(a.list(&second)),
        expected(&["a"], |number| *number >= 100)
    );
    let odd = "parity=odd".parse().unwrap();
    let found = lister.list_by_fields(&second, &odd).unwrap();
    let expected = expected(&["a", "b"], |number| number % 2 == 1 && *number >= 100);
    assert_eq!(names(found), expected);
}
