//! Tests how the source, a server of generated objects, parses or rejects list and watch requests.

use http::HeaderValue;

use super::*;
use crate::kind::CorpusKind;

fn read_as(kind: CorpusKind, accept: &'static str, uri: &str) -> Result<Request, Refusal> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    Request::read(kind.kind(), &Method::GET, &uri.parse().unwrap(), &headers)
}

fn read(uri: &str) -> Result<Request, Refusal> {
    read_as(CorpusKind::Pods, "*/*", uri)
}

fn list(uri: &str) -> ListRequest {
    match read(uri) {
        Ok(Request::List(list)) => list,
        other => panic!("{uri}: {other:?}"),
    }
}

fn watch(uri: &str) -> WatchFrom {
    match read(uri) {
        Ok(Request::Watch(watch)) => watch.from,
        other => panic!("{uri}: {other:?}"),
    }
}

#[test]
fn list_parameters_select_the_state() {
    assert_eq!(list("/api/v1/pods").from, ListFrom::Newest);
    assert_eq!(
        list("/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact").from,
        ListFrom::Exact(5)
    );
    let page = list("/api/v1/pods?limit=500&continue=500.0.1");
    assert_eq!(
        (page.limit, page.from),
        (Some(500), ListFrom::Token("500.0.1".to_owned()))
    );
}

#[test]
fn a_list_from_the_cache_has_no_pages() {
    assert_eq!(list("/api/v1/pods?limit=500").limit, Some(500));
    assert_eq!(list("/api/v1/pods?limit=500&resourceVersion=0").limit, None);
    assert_eq!(list("/api/v1/pods?limit=0").limit, None);
}

#[test]
fn watch_parameters_select_the_initial_events() {
    assert_eq!(
        watch("/api/v1/pods?watch=true"),
        WatchFrom::Objects { bookmark: false }
    );
    assert_eq!(
        watch("/api/v1/pods?watch=1&resourceVersion=0"),
        WatchFrom::Objects { bookmark: false }
    );
    assert_eq!(
        watch("/api/v1/pods?watch=true&resourceVersion=7"),
        WatchFrom::Revision(7)
    );
    let streaming = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(watch(streaming), WatchFrom::Objects { bookmark: true });
}

#[test]
fn initial_events_without_a_match_are_rejected() {
    let refusal = read("/api/v1/pods?watch=true&sendInitialEvents=true").unwrap_err();
    assert_eq!(refusal.code, StatusCode::UNPROCESSABLE_ENTITY);
}

#[test]
fn selectors_are_rejected() {
    assert!(read("/api/v1/pods?labelSelector=a%3Db").is_err());
    assert!(read("/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Da").is_err());
    assert!(read("/api/v1/pods?labelSelector=").is_ok());
}

#[test]
fn the_first_accepted_encoding_of_the_kind_is_selected() {
    let encoding = |kind, accept, uri| match read_as(kind, accept, uri) {
        Ok(Request::List(list)) => Ok(list.encoding),
        Err(refusal) => Err(refusal.code),
        other => panic!("{other:?}"),
    };
    let pods = |accept| encoding(CorpusKind::Pods, accept, "/api/v1/pods");
    let custom = |accept| {
        encoding(
            CorpusKind::Custom,
            accept,
            "/apis/argoproj.io/v1alpha1/applications",
        )
    };
    assert_eq!(
        pods("application/vnd.kubernetes.protobuf,application/json"),
        Ok(Encoding::Protobuf)
    );
    assert_eq!(
        pods("application/json, application/vnd.kubernetes.protobuf"),
        Ok(Encoding::Json)
    );
    assert_eq!(
        pods("application/vnd.kubernetes.protobuf;stream=watch"),
        Ok(Encoding::Protobuf)
    );
    assert_eq!(
        pods("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
        Ok(Encoding::Json)
    );
    assert_eq!(
        custom("application/vnd.kubernetes.protobuf,application/json"),
        Ok(Encoding::Json)
    );
    assert_eq!(
        custom("application/vnd.kubernetes.protobuf"),
        Err(StatusCode::NOT_ACCEPTABLE)
    );
    assert_eq!(
        pods("application/json;as=Table;v=v1;g=meta.k8s.io"),
        Err(StatusCode::NOT_ACCEPTABLE)
    );
}

#[test]
fn invalid_numbers_and_flags_are_rejected() {
    assert!(read("/api/v1/pods?resourceVersion=abc").is_err());
    assert!(read("/api/v1/pods?limit=-1").is_err());
    assert!(read("/api/v1/pods?watch=perhaps").is_err());
}
