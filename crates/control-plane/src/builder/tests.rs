//! Tests the control loops together, with the embedded server and paused time.

mod budgets;
mod logs;
mod start;

use tokio::time::sleep;

use super::*;

const NODES: [&str; 2] = ["node-1", "node-2"];

/// A period in virtual time that is longer than any operation of the tests.
const LONG: Duration = Duration::from_secs(60);

fn deployment(namespace: &str, replicas: u32) -> Value {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    })
}

fn running(server: &Server, namespace: &str) -> usize {
    let pods = server.list("v1", "pods").into_iter();
    let runs = |pod: &Value| {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        pod["metadata"]["namespace"] == namespace
            && pod["status"]["phase"] == "Running"
            && NODES.contains(&node)
    };
    pods.filter(runs).count()
}

async fn open(server: &Server) -> ControlPlane {
    ControlPlane::builder().start(server).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_running_pods_in_any_namespace() {
    let server = Server::builder().enforce_namespaces(false).build();
    let plane = open(&server).await;
    server.create(deployment("default", 3)).unwrap();
    server.create(deployment("elsewhere", 2)).unwrap();
    sleep(LONG).await;
    assert_eq!(running(&server, "default"), 3);
    assert_eq!(running(&server, "elsewhere"), 2);
    let stored = server.get("apps/v1", "deployments", "elsewhere/web");
    assert_eq!(stored.unwrap()["status"]["readyReplicas"], 2);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn loops_whose_requests_are_rejected_at_first_act_later() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    let plan = "* * from scheduler: 403 x5";
    server.faults().inject(plan).unwrap();
    server.create(deployment("default", 1)).unwrap();
    sleep(LONG).await;
    let log = server.requests();
    let refused = log.iter().filter(|request| request.status == Some(403));
    assert!(
        refused.count() > 0,
        "the plan finds the scheduler by its User-Agent"
    );
    assert_eq!(running(&server, "default"), 1);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn loops_without_work_send_no_writes_and_rarely_look() {
    let server = Server::builder().garbage_collection(true).build();
    let plane = open(&server).await;
    server
        .create(budgets::budget(&json!({"minAvailable": 1})))
        .unwrap();
    server.create(deployment("default", 3)).unwrap();
    let mut job = deployment("default", 1);
    job["apiVersion"] = "batch/v1".into();
    job["kind"] = "Job".into();
    job["spec"] = json!({"template": job["spec"]["template"]});
    job["spec"]["template"]["metadata"] =
        json!({"annotations": {"kubectl-informer/run-time": "5s"}});
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    server.create(job).unwrap();
    sleep(LONG).await;
    // An unready pod of a Deployment that was complete.
    let pods = server.list("v1", "pods");
    let pod = pods
        .iter()
        .find(|pod| pod["metadata"]["labels"]["app"] == "web")
        .unwrap();
    let unready = json!({"metadata": {"annotations": {"kubectl-informer/ready-delay": "never"}}});
    let name = format!("default/{}", pod["metadata"]["name"].as_str().unwrap());
    server.patch("v1", "pods", &name, unready).unwrap();
    sleep(LONG).await;
    let looks = || -> u64 { plane.reads().iter().map(|(_, reads)| reads).sum() };
    let before = (server.revision(), looks());
    sleep(60 * LONG).await;
    assert_eq!(server.revision(), before.0);
    let more = looks() - before.1;
    assert!(more < 100, "{more} reads in an hour");
    plane.shutdown().await;
}

// === rollouts ===

/// Returns the Deployment `web`, whose pods are ready 5 s after their start.
fn slowly_ready(image: &str, replicas: u32) -> Value {
    let mut deployment = deployment("default", replicas);
    let template = &mut deployment["spec"]["template"];
    template["spec"]["containers"][0]["image"] = image.into();
    template["metadata"]["annotations"] = json!({"kubectl-informer/ready-delay": "5s"});
    deployment
}

fn read(server: &Server) -> Value {
    server.get("apps/v1", "deployments", "default/web").unwrap()
}

fn change(server: &Server, patch: Value) {
    server
        .patch("apps/v1", "deployments", "default/web", patch)
        .unwrap();
}

/// Returns a patch that replaces the template by that of [`slowly_ready`] with another image.
fn with_image(image: &str) -> Value {
    json!({"spec": {"template": slowly_ready(image, 1)["spec"]["template"]}})
}

/// Returns `status` and `reason` of a condition of the Deployment.
fn condition(server: &Server, kind: &str) -> (String, String) {
    let deployment = read(server);
    let conditions = deployment["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == kind);
    let found = found.unwrap_or_else(|| panic!("no condition {kind} in {deployment}"));
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

fn as_text(condition: &(String, String)) -> (&str, &str) {
    (&condition.0, &condition.1)
}

/// Returns size and revision of each ReplicaSet by the image of its template.
fn sets(server: &Server) -> Vec<(String, i64, String)> {
    let of = |set: &Value| {
        let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
        let revision = &set["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
        (
            image.as_str().unwrap().to_owned(),
            set["spec"]["replicas"].as_i64().unwrap(),
            revision.as_str().unwrap().to_owned(),
        )
    };
    let mut sets: Vec<_> = server
        .list("apps/v1", "replicasets")
        .iter()
        .map(of)
        .collect();
    sets.sort();
    sets
}

fn events(server: &Server, reason: &str) -> Vec<String> {
    let events = server.list("v1", "events");
    let of_reason = events.iter().filter(|event| event["reason"] == reason);
    of_reason
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_keeps_enough_pods_available_and_ends() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(slowly_ready("a:1", 4)).unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        as_text(&condition(&server, "Available")),
        ("False", "MinimumReplicasUnavailable")
    );
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "ReplicaSetUpdated")
    );
    sleep(LONG).await;
    assert_eq!(
        as_text(&condition(&server, "Available")),
        ("True", "MinimumReplicasAvailable")
    );
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "NewReplicaSetAvailable")
    );

    change(&server, with_image("a:2"));
    let mut fewest = 4;
    let mut most = 0;
    for _ in 0..200 {
        sleep(Duration::from_millis(500)).await;
        let status = &read(&server)["status"];
        fewest = fewest.min(status["availableReplicas"].as_i64().unwrap());
        most = most.max(status["replicas"].as_i64().unwrap());
    }
    // maxUnavailable and maxSurge are 25 %.
    assert_eq!((fewest, most), (3, 5));
    let expected = [
        ("a:1".to_owned(), 0, "1".to_owned()),
        ("a:2".to_owned(), 4, "2".to_owned()),
    ];
    assert_eq!(sets(&server), expected);
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "NewReplicaSetAvailable")
    );
    assert_eq!(
        read(&server)["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    let scaled = events(&server, "ScalingReplicaSet");
    assert!(
        scaled.iter().any(|text| text.ends_with(" from 0 to 4")),
        "{scaled:?}"
    );
    assert!(
        scaled.iter().any(|text| text.starts_with("Scaled down ")),
        "{scaled:?}"
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_earlier_template_gets_a_new_revision_and_the_history_is_limited() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(slowly_ready("a:1", 2)).unwrap();
    change(&server, json!({"spec": {"revisionHistoryLimit": 2}}));
    for image in ["a:1", "a:2", "a:1", "a:3", "a:4"] {
        change(&server, with_image(image));
        sleep(LONG).await;
    }
    let expected = [("a:1", 0, "3"), ("a:3", 0, "4"), ("a:4", 2, "5")];
    let expected =
        expected.map(|(image, size, revision)| (image.to_owned(), size, revision.to_owned()));
    assert_eq!(sets(&server), expected, "a:2 is the oldest");
    let all = server.list("apps/v1", "replicasets");
    let histories = all
        .iter()
        .map(|set| &set["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"]);
    let histories: Vec<&Value> = histories.filter(|history| !history.is_null()).collect();
    assert_eq!(histories, ["1"]);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn recreate_starts_new_pods_after_the_last_old_one_is_gone() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    let mut first = slowly_ready("a:1", 3);
    first["spec"]["strategy"] = json!({"type": "Recreate"});
    let annotations = &mut first["spec"]["template"]["metadata"]["annotations"];
    annotations["kubectl-informer/stop-delay"] = "10s".into();
    server.create(first).unwrap();
    sleep(LONG).await;
    change(&server, with_image("a:2"));
    for _ in 0..60 {
        sleep(Duration::from_millis(500)).await;
        let pods = server.list("v1", "pods");
        let mut images: Vec<_> = pods
            .iter()
            .map(|pod| &pod["spec"]["containers"][0]["image"])
            .collect();
        images.dedup();
        assert!(images.len() <= 1, "{images:?}");
    }
    assert_eq!(read(&server)["status"]["availableReplicas"], 3);
    assert_eq!(sets(&server)[1], ("a:2".to_owned(), 3, "2".to_owned()));
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_without_progress_is_reported_after_its_deadline() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    let mut stuck = slowly_ready("a:1", 1);
    stuck["spec"]["progressDeadlineSeconds"] = 30.into();
    let annotations = &mut stuck["spec"]["template"]["metadata"]["annotations"];
    annotations["kubectl-informer/ready-delay"] = "never".into();
    server.create(stuck).unwrap();
    sleep(Duration::from_secs(25)).await;
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "ReplicaSetUpdated")
    );
    sleep(Duration::from_secs(20)).await;
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("False", "ProgressDeadlineExceeded")
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_progress_restarts_the_deadline() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    let mut slow = slowly_ready("a:1", 4);
    slow["spec"]["progressDeadlineSeconds"] = 30.into();
    let annotations = &mut slow["spec"]["template"]["metadata"]["annotations"];
    annotations["kubectl-informer/ready-delay"] = "20s".into();
    server.create(slow.clone()).unwrap();
    sleep(LONG).await;
    slow["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into();
    change(
        &server,
        json!({"spec": {"template": slow["spec"]["template"]}}),
    );
    // Two pods at a time, so the rollout takes longer than its deadline.
    for _ in 0..45 {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(condition(&server, "Progressing").0, "True");
    }
    assert_eq!(sets(&server)[1], ("a:2".to_owned(), 4, "2".to_owned()));
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "NewReplicaSetAvailable")
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_but_not_rolled_out() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(slowly_ready("a:1", 2)).unwrap();
    sleep(LONG).await;
    change(&server, json!({"spec": {"paused": true}}));
    change(&server, with_image("a:2"));
    change(&server, json!({"spec": {"replicas": 3}}));
    sleep(LONG).await;
    assert_eq!(sets(&server), [("a:1".to_owned(), 3, "1".to_owned())]);
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("Unknown", "DeploymentPaused")
    );
    change(&server, json!({"spec": {"paused": false}}));
    sleep(LONG).await;
    assert_eq!(sets(&server)[1], ("a:2".to_owned(), 3, "2".to_owned()));
    assert_eq!(
        as_text(&condition(&server, "Progressing")),
        ("True", "NewReplicaSetAvailable")
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn min_ready_seconds_delay_the_availability() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    let mut patient = slowly_ready("a:1", 2);
    patient["spec"]["minReadySeconds"] = 30.into();
    server.create(patient).unwrap();
    sleep(Duration::from_secs(20)).await;
    let status = read(&server)["status"].clone();
    assert_eq!(status["readyReplicas"], 2);
    assert_eq!(status["availableReplicas"], Value::Null);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(read(&server)["status"]["availableReplicas"], 2);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_rejected_are_reported_up_to_the_deployment() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.faults().inject("create pods: 403").unwrap();
    server.create(slowly_ready("a:1", 1)).unwrap();
    sleep(LONG).await;
    assert_eq!(
        as_text(&condition(&server, "ReplicaFailure")),
        ("True", "FailedCreate")
    );
    assert!(!events(&server, "FailedCreate").is_empty());
    server.faults().clear();
    sleep(Duration::from_secs(1_200)).await;
    assert_eq!(read(&server)["status"]["availableReplicas"], 1);
    let conditions = read(&server)["status"]["conditions"].clone();
    let kinds = conditions.as_array().unwrap().iter().map(|it| &it["type"]);
    assert!(
        !kinds.into_iter().any(|kind| kind == "ReplicaFailure"),
        "{conditions}"
    );
    plane.shutdown().await;
}
