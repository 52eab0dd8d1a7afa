//! Tests the job controller with node agents, the embedded server and paused time.

use kube_client::Api;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use super::{
    super::node_agent::{self, Fates, Logs, is_ready},
    *,
};

/// Maximum virtual time that a test waits for synced caches.
const LONG: Duration = Duration::from_secs(60);

/// Returns the Job `work`, whose pods run on the node `a` for 10 s and end with `exit_code`.
fn job(exit_code: u8, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": {
            "metadata": {"annotations": {
                "kubectl-informer/run-time": "10s",
                "kubectl-informer/exit-code": exit_code.to_string(),
            }},
            "spec": {
                "nodeName": "a",
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "pause"}],
            },
        }},
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

/// Starts the job controller and the agent of the node `a`.
async fn at_work(server: &Server) -> ControlPlane {
    let (mut plane, _) = ControlPlane::of_default();
    plane.write_events();
    let mut process = plane.process("controller", server.client());
    open(&mut plane, &mut process).await.unwrap();
    plane.host(process);
    let mut process = plane.process("agent", server.client());
    let silent = (&Fates::default(), &Logs::default());
    node_agent::open(&mut plane, &mut process, "a", silent).unwrap();
    plane.host(process);
    plane.observe(LONG).await.unwrap();
    plane.act();
    plane
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn status(server: &Server) -> Value {
    server.get("batch/v1", "jobs", "default/work").unwrap()["status"].clone()
}

/// Returns the types of the conditions that are true, with their reasons.
fn verdicts(server: &Server) -> Vec<String> {
    let status = status(server);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_true = conditions
        .iter()
        .filter(|condition| condition["status"] == "True");
    is_true
        .map(|condition| format!("{}: {}", condition["type"], condition["reason"]).replace('"', ""))
        .collect()
}

fn finalizers(server: &Server) -> usize {
    let pods = server.list("v1", "pods");
    pods.iter()
        .filter(|pod| !pod["metadata"]["finalizers"].is_null())
        .count()
}

#[tokio::test(start_paused = true)]
async fn enough_successes_complete_a_job() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    server
        .create(job(0, &json!({"completions": 5, "parallelism": 2})))
        .unwrap();
    pass(5).await;
    assert_eq!(
        (&status(&server)["active"], &status(&server)["ready"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(finalizers(&server), 2);
    pass(30).await;
    let status = status(&server);
    assert_eq!(status["succeeded"], 5, "{status}");
    assert_eq!(status["active"], Value::Null);
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert!(status["completionTime"].is_string());
    let expected = [
        "SuccessCriteriaMet: CompletionsReached",
        "Complete: CompletionsReached",
    ];
    assert_eq!(verdicts(&server), expected);
    assert_eq!(server.list("v1", "pods").len(), 5);
    assert_eq!(finalizers(&server), 0);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_failures_fail_a_job_after_growing_delays() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    server.create(job(1, &json!({"backoffLimit": 2}))).unwrap();
    // Each pod takes 10 s, and 10 s and 20 s pass between them.
    for (seconds, pods) in [(15, 1), (10, 2), (15, 2), (15, 3)] {
        pass(seconds).await;
        assert_eq!(
            server.list("v1", "pods").len(),
            pods,
            "after {seconds} s more"
        );
    }
    pass(20).await;
    assert_eq!(status(&server)["failed"], 3);
    let expected = [
        "FailureTarget: BackoffLimitExceeded",
        "Failed: BackoffLimitExceeded",
    ];
    assert_eq!(verdicts(&server), expected);
    assert_eq!(finalizers(&server), 0);
    pass(3_600).await;
    assert_eq!(server.list("v1", "pods").len(), 3);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_pods_of_a_job() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    let slow = json!({"activeDeadlineSeconds": 5, "parallelism": 3, "completions": 3});
    server.create(job(0, &slow)).unwrap();
    pass(20).await;
    assert_eq!(server.list("v1", "pods"), Vec::<Value>::new());
    let expected = [
        "FailureTarget: DeadlineExceeded",
        "Failed: DeadlineExceeded",
    ];
    assert_eq!(verdicts(&server), expected);
    assert_eq!(status(&server)["failed"], 3);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_index_succeeds_once() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    let indexed = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 2});
    server.create(job(0, &indexed)).unwrap();
    pass(15).await;
    assert_eq!(status(&server)["completedIndexes"], "0,1");
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let running = pods
        .list(&kube_client::api::ListParams::default())
        .await
        .unwrap();
    let running = running.items.iter().find(|pod| is_ready(pod)).unwrap();
    pods.delete(&running.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    pass(60).await;
    let status = status(&server);
    assert_eq!(status["completedIndexes"], "0-4", "{status}");
    assert_eq!(
        (&status["succeeded"], &status["failed"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(
        verdicts(&server).last().unwrap(),
        "Complete: CompletionsReached"
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_and_continues_later() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    server.create(job(0, &json!({"suspend": true}))).unwrap();
    pass(5).await;
    assert_eq!(server.list("v1", "pods"), Vec::<Value>::new());
    assert_eq!(verdicts(&server), ["Suspended: JobSuspended"]);
    let patch = |suspend: bool| json!({"spec": {"suspend": suspend}});
    server
        .patch("batch/v1", "jobs", "default/work", patch(false))
        .unwrap();
    pass(5).await;
    assert_eq!(status(&server)["active"], 1);
    server
        .patch("batch/v1", "jobs", "default/work", patch(true))
        .unwrap();
    pass(5).await;
    assert_eq!(server.list("v1", "pods"), Vec::<Value>::new());
    server
        .patch("batch/v1", "jobs", "default/work", patch(false))
        .unwrap();
    pass(60).await;
    assert_eq!(
        verdicts(&server).last().unwrap(),
        "Complete: CompletionsReached"
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_after_its_time_to_live() {
    let server = Server::builder().garbage_collection(true).build();
    let plane = at_work(&server).await;
    server
        .create(job(0, &json!({"ttlSecondsAfterFinished": 60})))
        .unwrap();
    pass(50).await;
    assert_eq!(
        verdicts(&server).last().unwrap(),
        "Complete: CompletionsReached"
    );
    pass(30).await;
    assert_eq!(server.get("batch/v1", "jobs", "default/work"), None);
    assert_eq!(server.list("v1", "pods"), Vec::<Value>::new());
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_are_released() {
    let server = Server::builder().garbage_collection(true).build();
    let plane = at_work(&server).await;
    server
        .create(job(0, &json!({"parallelism": 3, "completions": 3})))
        .unwrap();
    pass(5).await;
    let jobs: Api<Job> = Api::namespaced(server.client(), "default");
    jobs.delete("work", &DeleteParams::background())
        .await
        .unwrap();
    pass(60).await;
    assert_eq!(server.list("v1", "pods"), Vec::<Value>::new());
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn failing_requests_do_not_change_the_counts() {
    let server = Server::builder().build();
    let plane = at_work(&server).await;
    for plan in [
        "update jobs/status: 409 x3",
        "patch pods: 500 x5",
        "create pods: 503 x2",
    ] {
        server.faults().inject(plan).unwrap();
    }
    server
        .create(job(0, &json!({"completions": 4, "parallelism": 4})))
        .unwrap();
    pass(600).await;
    let status = status(&server);
    assert_eq!(
        (&status["succeeded"], &status["failed"]),
        (&json!(4), &Value::Null),
        "{status}"
    );
    assert_eq!(server.list("v1", "pods").len(), 4);
    assert_eq!(
        verdicts(&server).last().unwrap(),
        "Complete: CompletionsReached"
    );
    plane.shutdown().await;
}
