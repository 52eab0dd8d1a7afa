//! Tests the HTTP endpoint that adds, shows and clears fault plans.

use bytes::Bytes;
use http_body_util::Full;

use kube_informer_apiserver::{Server, User};

use crate::ask::{Reply, builder, get, pod, request, send};

const PODS: &str = "/api/v1/pods";

async fn faults(server: &Server, method: &str, plan: &str) -> Reply {
    let request = request(method, "/faults").body(Full::<Bytes>::from(plan.to_owned()));
    send(server, request.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn the_fault_endpoint_is_served_only_if_the_builder_enables_it() {
    let server = builder().build();
    assert_eq!(faults(&server, "POST", "list pods: 500").await.code, 404);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_added_read_and_cleared_over_http() {
    let server = builder().seed([pod("a")]).fault_endpoint(true).build();
    let added = faults(&server, "POST", "list pods: 500; freeze watch nodes").await;
    assert_eq!(
        (added.code, added.text.as_str()),
        (200, "seed 1\nlist pods: 500\nfreeze watch nodes\n")
    );
    assert_eq!(added.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(get(&server, PODS).await.code, 500);
    assert_eq!(faults(&server, "GET", "").await.text, added.text);
    assert_eq!(faults(&server, "DELETE", "").await.text, "seed 1\n");
    assert_eq!(get(&server, PODS).await.code, 200);
    assert_eq!(
        server.requests().len(),
        2,
        "requests to the endpoint are not recorded"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_to_the_fault_endpoint_are_rejected() {
    let server = builder().fault_endpoint(true).build();
    assert_eq!(
        faults(&server, "POST", "list pods: never").await.refusal(),
        "400 BadRequest: fault plan, line 1, column 12: expected an HTTP status from 400 to 599, or one of reset, refuse, delay, cut, break, freeze, split, drop, duplicate, swap, garble, spoil, retype, send, found `never`"
    );
    assert_eq!(
        faults(&server, "POST", "list *: 500\nrestart at 9")
            .await
            .refusal(),
        "400 BadRequest: fault plan, line 2, column 1: Timeout: Too large resource version: 9, current: 1"
    );
    assert_eq!(faults(&server, "PUT", "").await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn faults_do_not_affect_the_fault_endpoint() {
    let server = builder().fault_endpoint(true).build();
    faults(
        &server,
        "POST",
        "* *: 500; * *: delay 5s; * *: cut; refuse connections",
    )
    .await;
    let start = tokio::time::Instant::now();
    let plan = faults(&server, "GET", "").await.text;
    assert_eq!(plan.lines().count(), 5);
    assert_eq!(start.elapsed(), std::time::Duration::ZERO);
    faults(&server, "DELETE", "").await;
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_client_cannot_add_faults() {
    let server = builder()
        .fault_endpoint(true)
        .token("known", User::new("jane"))
        .build();
    let plan = "list pods: 500";
    assert_eq!(faults(&server, "POST", plan).await.code, 401);
    assert_eq!(get(&server.with_token("known"), PODS).await.code, 200);
    let known = server.with_token("known");
    assert_eq!(faults(&known, "POST", plan).await.code, 200);
    assert_eq!(get(&known, PODS).await.code, 500);
}
