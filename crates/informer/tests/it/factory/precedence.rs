//! Tests which options of a factory apply if several options are set for the same informer.
//!
//! A factory has general options, options for one type, and options for one namespace. The tests check the
//! requests that the server receives and the cached objects.
//!
//! Each row of the table in the documentation of `InformerOptions` has a test in this module.

use k8s_openapi::api::core::v1::{Namespace, Node};
use kube_core::{ApiResource, ObjectMeta, PartialObjectMeta, Resource, ResourceExt};
use kube_informer::{
    Indexers, Selector, SharedInformer, factory::NamespaceOptions, pruning::Pruned,
};
use kube_informer_apiserver::{Kind, LoggedRequest, Scope, Verb};
use serde_json::Value;

use super::*;
use crate::setting::factory_builder;

fn pod_in(namespace: &str, name: &str, from: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["namespace"] = json!(namespace);
    pod["metadata"]["labels"] = json!({ "from": from });
    pod
}

/// Returns the resource, namespace and selectors of each list request, one per line, sorted.
fn selections(server: &Server) -> String {
    let mut lines: Vec<_> = server
        .requests()
        .verb(Verb::List)
        .iter()
        .map(|request| {
            let options = &request.options;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (labels, fields) = (text(&options.label_selector), text(&options.field_selector));
            let (resource, namespace) = (&request.resource, text(&request.namespace));
            let line = format!("{resource} {namespace:?} {labels} {fields}");
            line.trim_end().to_owned() + "\n"
        })
        .collect();
    lines.sort();
    lines.concat()
}

fn names<K: Resource + Send + Sync + 'static>(informer: &SharedInformer<K>) -> Vec<String> {
    let objects = informer.indexer().list();
    let names = objects.iter();
    names
        .map(|object| object.object_name().to_string())
        .collect()
}

async fn synced(factory: &SharedInformerFactory) {
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn selectors_come_from_type_and_namespace_then_type_then_namespace_then_defaults() {
    let server = Server::builder().build();
    let from = |value: &str| format!("from={value}").parse().unwrap();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .default_labels(from("all"))
        .default_fields("metadata.name!=no")
        .namespaces_with([
            ("a", NamespaceOptions::new().labels(from("all-in-a"))),
            ("b", NamespaceOptions::new().fields("")),
        ])
        .for_type::<Pod>(InformerOptions::new().namespaces_with([
            ("a", NamespaceOptions::new().labels(from("pods-in-a"))),
            ("b", NamespaceOptions::new()),
        ]))
        .for_type::<Pod>(InformerOptions::new().labels(from("pods")))
        .build();
    factory.informer::<Pod>();
    factory.informer::<ConfigMap>();
    factory.informer::<Node>();
    let own = InformerOptions::<Pod>::new().namespaces(["a", "c"]);
    factory.informer_with(own).unwrap();
    let everything = InformerOptions::<Pod>::new().labels("".parse().unwrap());
    let everything = everything.fields("").namespaces([""; 0]);
    factory.informer_with(everything).unwrap();
    synced(&factory).await;
    expect![[r#"
        configmaps "a" from=all-in-a metadata.name!=no
        configmaps "b" from=all
        nodes "" from=all metadata.name!=no
        pods ""
        pods "a" from=pods-in-a metadata.name!=no
        pods "a" from=pods-in-a metadata.name!=no
        pods "b" from=pods
        pods "c" from=pods metadata.name!=no
    "#]]
    .assert_eq(&selections(&server));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn equal_selectors_of_the_type_and_of_a_request_share_one_informer() {
    let server = Server::builder().build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .for_type::<Pod>(InformerOptions::new().fields("metadata.name=a"))
        .build();
    let by_type = factory.informer::<Pod>();
    let same = InformerOptions::<Pod>::new().fields("metadata.name=a");
    assert!(factory.informer_with(same).unwrap().is_same(&by_type));
    let all = factory.informer_with(InformerOptions::<Pod>::new().fields(""));
    assert!(!all.unwrap().is_same(&by_type));
    synced(&factory).await;
    let log = server.requests();
    let lists = log.lists("pods");
    let fields = |request: &LoggedRequest| {
        let fields = request.options.field_selector.clone();
        fields.unwrap_or_default()
    };
    let mut fields: Vec<_> = lists.iter().map(fields).collect();
    fields.sort();
    assert_eq!(fields, ["", "metadata.name=a"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn options_of_a_type_apply_to_its_metadata_and_pruned_forms_unless_these_have_their_own() {
    let marked = |pod: &mut Pod| {
        let annotations = pod.annotations_mut();
        annotations.insert("trail".to_owned(), "pod".to_owned());
    };
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .for_type::<Pruned<Pod>>(InformerOptions::new().page_size(7))
        .for_type(
            InformerOptions::<Pod>::new()
                .fields("metadata.name=a")
                .transform(marked),
        )
        .for_type(
            InformerOptions::<Pod>::new()
                .page_size(3)
                .packed()
                .name("pods of type Pod"),
        )
        .for_type::<Pruned<Pod>>(InformerOptions::new().lazy())
        .build();
    let pods = factory.informer::<Pod>();
    let pruned = factory.informer::<Pruned<Pod>>();
    let metadata = factory.informer::<PartialObjectMeta<Pod>>();
    let both = factory.informer::<Pruned<PartialObjectMeta<Pod>>>();
    synced(&factory).await;
    let forms = factory.informers();
    let forms = forms.iter().map(|informer| {
        let coverage = informer.coverage().unwrap();
        let kept = if coverage.is_metadata_only {
            "metadata"
        } else {
            "all"
        };
        format!("{}: {:?}, {kept}", informer.name(), coverage.representation)
    });
    expect![[r#"
        pods of type Pod: Packed, all
        pods with fields metadata.name=a: Lazy, all
        metadata of pods with fields metadata.name=a: Decoded, metadata
        metadata of pods with fields metadata.name=a: Decoded, metadata"#]]
    .assert_eq(&forms.collect::<Vec<_>>().join("\n"));
    let log = server.requests();
    let limits = log.lists("pods");
    let mut limits: Vec<_> = limits.iter().map(|request| request.options.limit).collect();
    limits.sort_unstable();
    assert_eq!(limits, [Some(3), Some(3), Some(3), Some(7)]);
    let marks = [
        trails(&pods),
        trails(&pruned),
        trails(&metadata),
        trails(&both),
    ];
    let expected = ["pod", "pod", "", ""].map(|trail| vec![trail.to_owned()]);
    assert_eq!(
        marks, expected,
        "transforms of Pod do not apply to its metadata"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_informer_can_have_options_for_each_of_its_namespaces() {
    let server = Server::builder().build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .for_type(InformerOptions::<Pod>::new().fields("metadata.name=a"))
        .build();
    let web = || NamespaceOptions::new().labels("app=web".parse().unwrap());
    let options = || {
        InformerOptions::<Pod>::new()
            .namespaces_with([("shop", web()), ("", NamespaceOptions::new())])
    };
    let pods = factory.informer_with(options()).unwrap();
    assert!(factory.informer_with(options()).unwrap().is_same(&pods));
    synced(&factory).await;
    expect![[r#"
        pods ""  metadata.namespace!=shop,metadata.name=a
        pods "shop" app=web metadata.name=a
    "#]]
    .assert_eq(&selections(&server));
    factory.shutdown().await;
}

fn trails<K: Resource + Send + Sync + 'static>(informer: &SharedInformer<K>) -> Vec<String> {
    let objects = informer.indexer().list();
    let trail = |object: &kube_informer::Object<K>| {
        let object = object.get().unwrap();
        let trail = object.annotations().get("trail").cloned();
        trail.unwrap_or_default()
    };
    objects.iter().map(trail).collect()
}

#[tokio::test(start_paused = true)]
async fn transforms_come_from_type_and_namespace_then_type_then_namespace() {
    fn note(metadata: &mut ObjectMeta, who: &str) {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations
            .entry("trail".to_owned())
            .or_default()
            .push_str(who);
    }
    let server = Server::builder()
        .seed([
            pod_in("a", "p", ""),
            pod_in("b", "p", ""),
            pod_in("c", "p", ""),
        ])
        .build();
    let map = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": namespace}});
    server.create(map("a")).unwrap();
    server.create(map("b")).unwrap();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        // The source of the object is known, even if the transform changes its namespace.
        .transform_metadata(|metadata| {
            note(metadata, "metadata,");
            metadata.namespace = None;
        })
        .namespaces_with([
            (
                "a",
                NamespaceOptions::new().transform(|metadata| note(metadata, "all in a,")),
            ),
            ("b", NamespaceOptions::new()),
            ("c", NamespaceOptions::new()),
        ])
        .for_type::<Pod>(
            InformerOptions::new()
                .transform(|pod: &mut Pod| note(pod.meta_mut(), "pods,"))
                .namespaces_with([
                    (
                        "b",
                        NamespaceOptions::new()
                            .transform(|pod: &mut Pod| note(pod.meta_mut(), "pods in b,")),
                    ),
                    ("a", NamespaceOptions::new()),
                    ("c", NamespaceOptions::new().transform(|_: &mut Pod| ())),
                ]),
        )
        .build();
    let (pods, maps) = (factory.informer::<Pod>(), factory.informer::<ConfigMap>());
    let own = InformerOptions::<Pod>::new()
        .fields("metadata.name=p")
        .transform(|pod| note(pod.meta_mut(), "own,"));
    let own = factory.informer_with(own).unwrap();
    synced(&factory).await;
    assert_eq!(
        trails(&pods),
        ["metadata,pods,", "metadata,pods in b,", "metadata,"]
    );
    assert_eq!(trails(&maps), ["metadata,all in a,", "metadata,"]);
    assert_eq!(trails(&own), ["metadata,own,"; 3]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_requested_with_its_most_specific_options() {
    let server = Server::builder().build();
    let pages = |size| NamespaceOptions::new().page_size(size);
    let factory = factory_builder(server.client())
        .page_size(1)
        .namespaces_with([("a", pages(2)), ("b", NamespaceOptions::new())])
        .build();
    factory.informer::<ConfigMap>();
    factory.informer::<Node>();
    let options = |in_a| {
        InformerOptions::<Pod>::new().page_size(3).namespaces_with([
            ("a", NamespaceOptions::new().page_size(in_a)),
            ("c", NamespaceOptions::new()),
        ])
    };
    let pods = factory.informer_with(options(4)).unwrap();
    assert!(factory.informer_with(options(4)).unwrap().is_same(&pods));
    let conflict = factory.informer_with(options(5)).unwrap_err();
    assert!(
        conflict.to_string().contains("with another page size; "),
        "{conflict}"
    );
    synced(&factory).await;
    let log = server.requests().verb(Verb::List);
    let mut lists: Vec<_> = log
        .iter()
        .map(|request| {
            let namespace = request.namespace.clone().unwrap_or_default();
            let limit = request.options.limit.unwrap();
            format!("{} {namespace:?} {limit}", request.resource)
        })
        .collect();
    lists.sort();
    let expected = [
        r#"configmaps "a" 2"#,
        r#"configmaps "b" 1"#,
        r#"nodes "" 1"#,
        r#"pods "a" 4"#,
        r#"pods "c" 3"#,
    ];
    assert_eq!(lists, expected);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn named_namespaces_and_all_others_share_one_informer_without_duplicates() {
    let server = Server::builder()
        .seed([
            pod_in("a", "yes", "a"),
            pod_in("a", "no", "x"),
            pod_in("b", "any", "x"),
            pod_in("c", "any", "x"),
        ])
        .enforce_namespaces(false)
        .build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .namespaces_with([
            ("", NamespaceOptions::new()),
            (
                "a",
                NamespaceOptions::new().labels("from=a".parse().unwrap()),
            ),
        ])
        .build();
    let pods = factory.informer::<Pod>();
    let namespaces = factory.informer::<Namespace>();
    let trace = Trace::default();
    trace.listen(&pods);
    synced(&factory).await;
    assert_eq!(names(&pods), ["a/yes", "b/any", "c/any"]);
    assert!(namespaces.has_synced());
    expect![[r#"
        namespaces ""
        pods "" metadata.namespace!=a
        pods "a" from=a
    "#]]
    .assert_eq(&selections(&server).replace("  ", " "));
    pods.handlers_idle().await;
    trace.take();
    for object in [
        pod_in("a", "new", "a"),
        pod_in("a", "not", "x"),
        pod_in("d", "new", ""),
    ] {
        let written = server.create(object).unwrap();
        let revision = written["metadata"]["resourceVersion"].as_str().unwrap();
        pods.wait_for_revision(revision, LONG).await.unwrap();
    }
    pods.handlers_idle().await;
    assert_eq!(trace.take(), "add a/new@5\nadd d/new@7\n");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_syncs_when_all_namespaces_have_and_a_failed_wait_names_the_forbidden_one() {
    let server = Server::builder()
        .seed([pod_in("a", "p", ""), pod_in("b", "p", "")])
        .build();
    let refused = Match::any().in_namespace("b");
    server.faults().answer(refused, 403).times(1000);
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .namespaces(["a", "b"])
        .build();
    let pods = factory.informer::<Pod>();
    factory.start();
    let error = factory.wait_for_cache_sync().fail_fast().await.unwrap_err();
    assert!(!pods.has_synced());
    let text = error.to_string();
    let expected = "; last error: pods in b: forbidden (0ns ago, failing for 0ns); grant \"list\" and \"watch\" on the resource";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(
        names(&pods),
        ["a/p"],
        "the objects of the other namespaces are cached meanwhile"
    );
    server.faults().clear_answers();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(names(&pods), ["a/p", "b/p"]);
    let sources = pods.status().get().sources;
    let revisions = sources.iter().map(|source| source.revision.to_string());
    assert_eq!(
        revisions.collect::<Vec<_>>(),
        ["2", "2"],
        "each namespace has its own revision"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn options_of_a_dynamic_kind_apply_only_to_that_kind() {
    let server = Server::builder()
        .seed([labelled("a", "web"), labelled("b", "db")])
        .build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let kind = ApiResource::erase::<Pod>(&());
    let web = || InformerOptions::new().labels("app=web".parse().unwrap());
    let all = factory.for_resource(&kind).unwrap();
    let ours = factory.for_resource_with(&kind, web()).unwrap();
    assert!(
        factory
            .for_resource_with(&kind, web())
            .unwrap()
            .is_same(&ours)
    );
    let conflict = factory
        .for_resource_with(&kind, web().resync(LONG))
        .unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "the factory already has an informer of Pod in this scope with another resync period; use the same options, or another factory"
    );
    let metadata = factory.for_metadata(&kind).unwrap();
    let labels = InformerOptions::new().labels("app=db".parse().unwrap());
    let theirs = factory.for_metadata_with(&kind, labels).unwrap();
    synced(&factory).await;
    assert_eq!(names(&all), ["default/a", "default/b"]);
    assert_eq!(names(&ours), ["default/a"]);
    assert_eq!(names(&metadata), ["default/a", "default/b"]);
    assert_eq!(names(&theirs), ["default/b"]);
    let log = server.requests();
    assert_eq!(
        log.lists("pods").len(),
        4,
        "each representation and scope has its own options"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_dynamic_kind_are_selected_on_declared_indices() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder().kind(kind).build();
    let widget = |name: &str, size: u32| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": {"size": size}});
    for (name, size) in [("a", 1), ("b", 2), ("c", 2)] {
        server.create(widget(name, size)).unwrap();
    }
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let kind = factory.discover("widgets.example.com").await.unwrap();
    let widgets = factory.for_resource(&kind).unwrap();
    let fields = Indexers::new().with_field("spec.size");
    widgets.add_indexers(fields).await.unwrap();
    synced(&factory).await;
    let (lister, all) = (widgets.lister(), Selector::everything());
    let found = |fields: &str| {
        let found = lister.list_by_fields(&all, &fields.parse().unwrap());
        let names = found.unwrap().map(|object| object.name().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(found("spec.size=2"), ["b", "c"]);
    assert_eq!(found("spec.size!=2,metadata.name!=x"), ["a"]);
    server.update(widget("c", 3)).unwrap();
    let reached = widgets.wait_for_revision(server.revision(), LONG);
    reached.await.unwrap();
    assert_eq!(found("spec.size=2"), ["b"]);
    let unknown = "spec.color=red".parse().unwrap();
    let unknown = lister.list_by_fields(&all, &unknown);
    assert!(unknown.is_err(), "the field is not declared");
    factory.shutdown().await;
}
