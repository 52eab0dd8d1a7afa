//! Tests lists, pages and watches of the benchmark's object server with the client of kube-rs.

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams,
};
use source::CorpusKind;

use crate::served::Served;

fn revision(pod: &Pod) -> u64 {
    pod.metadata
        .resource_version
        .as_ref()
        .unwrap()
        .parse()
        .unwrap()
}

async fn newest(pods: &Api<Pod>) -> String {
    let list = pods.list(&ListParams::default().limit(1)).await.unwrap();
    list.metadata.resource_version.unwrap()
}

fn stamp(pod: &Pod) -> u64 {
    pod.metadata.annotations.as_ref().unwrap()["bench/ts"]
        .parse()
        .unwrap()
}

#[tokio::test]
async fn pages_are_the_whole_list_in_order() {
    let served = Served::new(CorpusKind::Pods, 1_234).await;
    let pods: Api<Pod> = Api::all(served.kube());
    let whole = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(whole.items.len(), 1_234);
    let mut params = ListParams::default().limit(500);
    let mut paged = Vec::new();
    let mut lengths = Vec::new();
    loop {
        let page = pods.list(&params).await.unwrap();
        assert_eq!(
            page.metadata.resource_version,
            whole.metadata.resource_version
        );
        lengths.push((page.items.len(), page.metadata.remaining_item_count));
        paged.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(lengths, [(500, Some(734)), (500, Some(234)), (234, None)]);
    assert_eq!(paged, whole.items);
}

#[tokio::test]
async fn pages_are_of_one_moment_whatever_changes_between_them() {
    let served = Served::new(CorpusKind::Pods, 20).await;
    let pods: Api<Pod> = Api::all(served.kube());
    let before = pods.list(&ListParams::default()).await.unwrap();
    let first = pods.list(&ListParams::default().limit(5)).await.unwrap();
    served.post("/emit?n=30").await;
    let token = first.metadata.continue_.unwrap();
    let rest = pods
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    assert_eq!(rest.items, before.items[5..]);
    let after = pods.list(&ListParams::default()).await.unwrap();
    assert!(
        after
            .items
            .iter()
            .all(|pod| stamp(pod) > 0 && revision(pod) > revision(&before.items[0]))
    );
}

#[tokio::test]
async fn a_streaming_list_shows_all_pods_then_a_bookmark_then_every_change_in_order() {
    let served = Served::new(CorpusKind::Pods, 300).await;
    let pods: Api<Pod> = Api::all(served.kube());
    let listed = pods.list(&ListParams::default()).await.unwrap();
    let stream = pods
        .watch(&WatchParams::streaming_lists(), "0")
        .await
        .unwrap();
    let mut stream = stream.boxed();
    let mut added = Vec::new();
    let bookmark = loop {
        match stream.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(pod) => added.push(pod),
            WatchEvent::Bookmark(bookmark) => break bookmark,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(added, listed.items);
    assert_eq!(
        bookmark.metadata.annotations["k8s.io/initial-events-end"],
        "true"
    );
    let start: u64 = bookmark.metadata.resource_version.parse().unwrap();

    let receive = async {
        let mut stamps = Vec::new();
        for expected in start + 1..=start + 1_000 {
            match stream.try_next().await.unwrap().unwrap() {
                WatchEvent::Modified(pod) => {
                    assert_eq!(revision(&pod), expected);
                    stamps.push(stamp(&pod));
                }
                other => panic!("{other:?}"),
            }
        }
        stamps
    };
    let (emitted, stamps) = tokio::join!(served.post("/emit?n=1000&rate=0"), receive);
    assert_eq!(emitted["events"], 1_000);
    assert!(stamps.is_sorted_by(|a, b| a < b));
    let stats = served.get("/stats").await.1;
    assert_eq!(
        (&stats["changes"], &stats["events"], &stats["watching"]),
        (&1_000.into(), &1_301.into(), &1.into())
    );
}

#[tokio::test]
async fn a_watch_goes_on_after_its_revision_and_ends_when_it_is_cut() {
    let served = Served::new(CorpusKind::Pods, 50).await;
    let pods: Api<Pod> = Api::all(served.kube());
    let start = newest(&pods).await;
    served.post("/emit?n=70").await;
    let stream = pods.watch(&WatchParams::default(), &start).await.unwrap();
    let mut stream = stream.boxed();
    for _ in 0..70 {
        assert!(matches!(
            stream.try_next().await.unwrap(),
            Some(WatchEvent::Modified(_))
        ));
    }
    served.post("/cut").await;
    assert!(stream.try_next().await.unwrap().is_none());
    let list = pods.list(&ListParams::default()).await.unwrap();
    let revisions: Vec<_> = list.items.iter().map(revision).collect();
    assert!(
        revisions.contains(&(start.parse::<u64>().unwrap() + 70)),
        "later lists show the changes"
    );
}

#[tokio::test]
async fn after_an_expiry_a_watch_from_an_old_revision_is_told_410_and_objects_are_as_before() {
    let served = Served::new(CorpusKind::Pods, 50).await;
    let pods: Api<Pod> = Api::all(served.kube());
    let before = pods.list(&ListParams::default()).await.unwrap();
    let old = before.metadata.resource_version.unwrap();
    served.post("/expire").await;
    let stream = pods.watch(&WatchParams::default(), &old).await.unwrap();
    match stream.boxed().try_next().await.unwrap() {
        Some(WatchEvent::Error(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
        }
        other => panic!("{other:?}"),
    }
    let after = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(after.items, before.items);
    assert_ne!(after.metadata.resource_version, Some(old.clone()));
    let exact = format!("/api/v1/pods?resourceVersion={old}&resourceVersionMatch=Exact");
    assert_eq!(served.get(&exact).await.0, StatusCode::GONE);
}

#[tokio::test]
async fn each_kind_is_found_where_clients_look_for_it() {
    let served = Served::new(CorpusKind::Configmaps, 20).await;
    let maps: Api<ConfigMap> = Api::all(served.kube());
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        20
    );
    let pods: Api<Pod> = Api::all(served.kube());
    assert!(
        pods.list(&ListParams::default()).await.is_err(),
        "one kind is served, and no empty list of another"
    );

    let served = Served::new(CorpusKind::Secrets, 20).await;
    let secrets: Api<Secret> = Api::all(served.kube());
    assert_eq!(
        secrets
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        20
    );

    let served = Served::new(CorpusKind::Custom, 20).await;
    let client = served.kube();
    let groups = client.list_api_groups().await.unwrap().groups;
    assert_eq!(groups[0].name, "argoproj.io");
    let found = client
        .list_api_group_resources("argoproj.io/v1alpha1")
        .await
        .unwrap()
        .resources;
    assert_eq!(
        (found[0].name.as_str(), found[0].kind.as_str()),
        ("applications", "Application")
    );
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "argoproj.io",
        "v1alpha1",
        "Application",
    ));
    let applications: Api<DynamicObject> = Api::all_with(client, &kind);
    let list = applications.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 20);
    assert!(list.items.iter().all(|item| {
        item.types
            .as_ref()
            .is_some_and(|types| types.kind == "Application")
    }));
}
