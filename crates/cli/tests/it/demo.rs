//! Tests the demo on the embedded server: its output, and the requests in the server's request log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::binary::{Ended, Running, Step, file, run};

const CONTROLLERS: &str = "deployment-and-replica-set-controller";

/// Steps that the demo must print, in causal order.
///
/// Each entry contains prefixes of two printed columns: the name of the control loop, and the step's text.
const STEPS: [(&str, &str); 13] = [
    ("user", "asks for a Deployment of 3 pods"),
    ("deployment", "sees a Deployment of 3 pods"),
    ("deployment", "made a ReplicaSet"),
    ("replica-set", "sees a ReplicaSet of 3 pods"),
    ("replica-set", "made a pod"),
    ("scheduler", "sees no spec.nodeName: queues it"),
    ("node-agent/", "sees no node in it: not mine, back to sleep"),
    ("scheduler", "bound it to node-"),
    ("node-agent/", "wakes, for it is mine: starts it"),
    ("node-agent/", "wrote its status: Running"),
    ("node-agent/", "wrote its status: Failed"),
    ("replica-set", "sees it ended, so one is missing"),
    ("replica-set", "deleted it"),
];

fn of<'a>(steps: &'a [Step], who: &str, text: &str) -> Vec<&'a Step> {
    let wanted = |step: &&Step| step.who.starts_with(who) && step.text.starts_with(text);
    steps.iter().filter(wanted).collect()
}

fn objects(steps: &[&Step]) -> BTreeSet<String> {
    steps.iter().map(|step| step.object.clone()).collect()
}

/// Runs the demo with a request log. Returns the result and the entries of the log.
async fn logged(name: &str, arguments: &[&str]) -> (Ended, Vec<Value>) {
    let log = file(name);
    let path = log.to_str().unwrap();
    let ended = run(&[&["demo", "--request-log", path], arguments].concat()).await;
    let log = std::fs::read_to_string(log).unwrap();
    let requests = log.lines().map(|line| serde_json::from_str(line).unwrap());
    (ended, requests.collect())
}

/// Returns the revisions in the responses to the requests with this user agent, verb and resource.
fn answered(requests: &[Value], user_agent: &str, verb: &str, resource: &str) -> BTreeSet<u64> {
    let theirs = requests.iter().filter(|request| {
        request["userAgent"] == user_agent
            && request["verb"] == verb
            && request["resource"] == resource
    });
    theirs
        .filter_map(|request| request["revision"].as_u64())
        .collect()
}

#[tokio::test]
async fn every_step_from_the_deployment_to_the_replaced_pod_is_printed() {
    let ended = run(&["demo"]).await.with_code(0);
    let steps = ended.steps();
    let mut earlier = 0;
    for (who, text) in STEPS {
        let found = of(&steps, who, text);
        let first = found.iter().map(|step| step.revision).min();
        let first = first.unwrap_or_else(|| panic!("{who} {text}:\n{}", ended.out));
        assert!(first >= earlier, "{who} {text}:\n{}", ended.out);
        earlier = first;
    }
    let last = of(&steps, "deployment", "wrote its status")
        .into_iter()
        .next_back();
    assert_eq!(last.unwrap().text, "wrote its status: 3 of 3 ready");
    let content = of(
        &steps,
        "replica-set",
        "sees 3 pods ready, has nothing to do",
    );
    assert!(!content.is_empty(), "{}", ended.out);
    let runs = of(&steps, "node-agent/", "wrote its status: Running");
    for seen in content {
        let ran = |it: &&Step| (&it.object, it.revision) == (&seen.object, seen.revision);
        assert!(runs.iter().any(ran), "{seen:?}:\n{}", ended.out);
    }
    let times: Vec<f64> = steps.iter().map(|step| step.at).collect();
    assert!(times.is_sorted(), "{}", ended.out);
    assert_eq!(objects(&of(&steps, "replica-set", "made a pod")).len(), 4);
    assert_eq!(objects(&of(&steps, "scheduler", "bound it")).len(), 4);
    let read = of(
        &steps,
        "node-agent/",
        "its container ended: reads it from the server",
    );
    let ran = of(&steps, "node-agent/", "wrote its status: Running");
    let as_it_ran = |it: &Step| (it.object.clone(), it.revision);
    assert!(
        ran.iter().any(|ran| as_it_ran(ran) == as_it_ran(read[0])),
        "{}",
        ended.out
    );
    let failed = objects(&of(&steps, "node-agent/", "wrote its status: Failed"));
    assert_eq!(failed, objects(&of(&steps, "replica-set", "deleted it")));
    assert_eq!(failed.len(), 1);
    assert!(
        ended
            .out
            .contains("Replicas ready: 3 of 3. Failed and replaced: 1.")
    );
    assert_eq!(ended.err, "");
}

#[tokio::test]
async fn every_line_has_a_revision_that_the_server_returned() {
    let (ended, requests) = logged("join.log", &["--replicas", "4", "--pods-fail", "2"]).await;
    let steps = ended.with_code(0).steps();
    let mut joined = BTreeMap::<&str, usize>::new();
    for step in &steps {
        let agent = match step.who.as_str() {
            "deployment" | "replica-set" => CONTROLLERS,
            who => who,
        };
        let (verb, resource) = match (step.who.as_str(), step.text.split(' ').next().unwrap()) {
            ("user", _) => ("create", "deployments"),
            ("deployment", "made") => ("create", "replicasets"),
            ("deployment", "wrote") => ("update", "deployments"),
            ("replica-set", "made") | ("scheduler", "bound") => ("create", "pods"),
            ("replica-set", "wrote") => ("patch", "replicasets"),
            ("replica-set", "deleted") => ("delete", "pods"),
            (_, "its") => ("get", "pods"),
            (who, "wrote") if who.starts_with("node-agent/") => ("patch", "pods"),
            (_, "sees" | "wakes,") => continue,
            other => panic!("unknown line {other:?}"),
        };
        let revisions = answered(&requests, agent, verb, resource);
        assert!(revisions.contains(&step.revision), "{step:?} {revisions:?}");
        *joined.entry(verb).or_default() += 1;
    }
    assert!(joined["create"] > 12 && joined["patch"] > 8, "{joined:?}");
    assert!(joined["delete"] == 2 && joined["get"] >= 2, "{joined:?}");
    let known: BTreeSet<_> = requests
        .iter()
        .filter_map(|it| it["revision"].as_u64())
        .collect();
    for step in &steps {
        assert!(known.contains(&step.revision), "{step:?}");
    }
}

#[tokio::test]
async fn caches_serve_all_reads_except_one_for_each_pod_that_ends() {
    let (ended, requests) = logged("reads.log", &["--replicas", "5", "--pods-fail", "2"]).await;
    let ended = ended.with_code(0);
    let count = |agent: &str, verb: &str| {
        let theirs = |it: &&Value| it["userAgent"] == agent && it["verb"] == verb;
        requests.iter().filter(theirs).count()
    };
    let informers = [
        (CONTROLLERS, 3),
        ("scheduler", 2),
        ("node-agent/node-1", 1),
        ("node-agent/node-2", 1),
    ];
    for (agent, informers) in informers {
        // Each cache is filled by one list and updated by one watch.
        let counts = (count(agent, "list"), count(agent, "watch"));
        assert_eq!(counts, (informers, informers), "{agent}");
        let gets = count(agent, "get");
        assert!(agent.starts_with("node-agent/") || gets == 0, "{agent}");
        let row = ended
            .out
            .lines()
            .find(|line| line.starts_with(&format!("{agent} ")));
        let mut numbers = row.unwrap().split_whitespace().skip(1);
        let informers = informers.to_string();
        assert_eq!(numbers.next(), Some(informers.as_str()));
        assert_eq!(numbers.next(), Some(informers.as_str()));
        assert_ne!(numbers.last(), Some("0"), "it serves reads from its cache");
    }
    let gets = requests.iter().filter(|it| it["verb"] == "get");
    let read: BTreeSet<_> = gets.map(|it| it["name"].to_string()).collect();
    assert_eq!(read.len(), 2, "one read for each pod that ended");
    assert!(
        ended
            .out
            .contains("After their caches were filled the loops sent no list")
    );
}

#[tokio::test]
async fn five_hundred_replicas_are_summarized_and_no_pod_is_created_twice() {
    let (ended, requests) = logged(
        "many.log",
        &["--replicas", "500", "--pods-fail", "3", "--deadline", "120"],
    )
    .await;
    let ended = ended.with_code(0);
    assert!(
        ended
            .out
            .contains("Replicas ready: 500 of 500. Failed and replaced: 3.")
    );
    assert!(ended.out.contains("… 500 so far: made a pod"));
    let lines = ended.out.lines().count();
    assert!(lines < 200, "{lines} lines");
    let made = requests.iter().filter(|it| {
        it["verb"] == "create" && it["resource"] == "pods" && it["subresource"].is_null()
    });
    assert_eq!(made.count(), 503);
}

#[tokio::test]
async fn without_a_loop_the_demo_stops_before_its_step() {
    let rows = [
        (
            "deployment",
            "without its loop, the Deployment gets no ReplicaSet",
            None,
        ),
        (
            "replica-set",
            "without its loop, the ReplicaSet gets no pods",
            Some("made a ReplicaSet"),
        ),
        (
            "scheduler",
            "without the scheduler, 3 pods get no node",
            Some("made a pod"),
        ),
        (
            "node-agent",
            "without the node agent, 3 pods have a node",
            Some("bound it"),
        ),
    ];
    for (without, says, last) in rows {
        let ended = run(&["demo", "--without", without]).await.with_code(0);
        assert!(ended.out.contains(says), "{without}:\n{}", ended.out);
        let steps = ended.steps();
        assert!(
            of(&steps, without, "").is_empty(),
            "{without} prints a step"
        );
        let at = |text: &str| steps.iter().any(|step| step.text.starts_with(text));
        assert!(last.is_none_or(at), "{without}:\n{}", ended.out);
        let later = ["made a ReplicaSet", "made a pod", "bound it", "wakes"];
        let beyond = later
            .iter()
            .skip_while(|text| last.is_some_and(|last| **text != last));
        for text in beyond.skip(usize::from(last.is_some())) {
            assert!(!at(text), "{without}: {text}:\n{}", ended.out);
        }
    }
}

#[tokio::test]
async fn no_pod_fails_if_none_is_configured_to_fail() {
    let ended = run(&["demo", "--pods-fail", "0"]).await.with_code(0);
    assert!(!ended.out.contains("Failed\n") && !ended.out.contains("deleted it"));
    assert!(
        ended
            .out
            .contains("Replicas ready: 3 of 3. Failed and replaced: 0.")
    );
}

#[tokio::test]
async fn more_failures_than_pods_are_allowed() {
    let ended = run(&["demo", "--replicas", "1", "--pods-fail", "3"])
        .await
        .with_code(0);
    assert!(
        ended
            .out
            .contains("Replicas ready: 1 of 1. Failed and replaced: 3.")
    );
}

#[tokio::test]
async fn a_deployment_without_pods_is_ready() {
    let ended = run(&["demo", "--replicas", "0"]).await.with_code(0);
    assert!(ended.out.contains("Replicas ready: 0 of 0."));
    assert!(!ended.out.contains("made a pod"));
}

#[tokio::test]
async fn a_pod_too_large_for_any_node_stays_pending_and_the_step_is_named() {
    let ended = run(&["demo", "--cpu", "100"]).await.with_code(1);
    assert!(
        ended
            .out
            .contains("leaves it Pending: 0/2 nodes are available: 2 insufficient cpu")
    );
    assert!(
        ended.out.contains("scheduler, pods: synced, watching"),
        "{}",
        ended.out
    );
    assert!(
        ended
            .err
            .starts_with("error: the demo did not complete: pods are bound to a node (0 of 3)")
    );
    assert!(ended.err.contains("--cpu"));
    assert_eq!(ended.err.lines().count(), 1);
}

#[tokio::test]
async fn control_c_ends_the_demo_cleanly_at_any_step() {
    for reached in ["embedded API server", "caches are filled", "made a pod"] {
        let mut running = Running::start(&["demo", "--without", "scheduler"]);
        running.line_with(reached).await;
        let ended = running.end_by("-INT").await.with_code(130);
        assert!(ended.out.contains("are gone"), "{reached}:\n{}", ended.out);
        assert!(!ended.out.contains("Nothing has moved"), "{reached}");
        assert!(ended.err.contains("interrupted") && ended.err.lines().count() == 1);
    }
}
