//! Tests the logs of simulated containers.

use http::Request;

use super::*;

async fn log_of(server: &Server, pod: &str, query: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log?{query}");
    let request = Request::get(path).body(Vec::new()).unwrap();
    let client = server.client();
    client
        .request_text(request)
        .await
        .map_err(|error| match error {
            kube_client::Error::Api(status) => status.message.clone(),
            error => error.to_string(),
        })
}

/// Returns the pod `talks`, which logs two lines, ends after 10 s and is restarted.
fn talking() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "talks", "namespace": "default", "annotations": {
            "kubectl-informer/log": "hello\nworld",
            "kubectl-informer/start-delay": "5s",
            "kubectl-informer/run-time": "10s",
            "kubectl-informer/exit-code": "3",
        }},
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn logs_are_those_of_the_simulated_containers() {
    let logs = Logs::default();
    let server = Server::builder().pod_logs(logs.clone()).build();
    let plane = ControlPlane::builder()
        .loops([Loop::Scheduler, Loop::NodeAgent])
        .pod_logs(&logs)
        .start(&server)
        .await
        .unwrap();
    server.create(talking()).unwrap();
    sleep(Duration::from_secs(2)).await;
    let waiting = "container \"main\" in pod \"talks\" is waiting to start: ContainerCreating";
    assert_eq!(log_of(&server, "talks", "").await.unwrap_err(), waiting);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(
        log_of(&server, "talks", "").await.unwrap(),
        "hello\nworld\n"
    );
    assert_eq!(
        log_of(&server, "talks", "tailLines=1").await.unwrap(),
        "world\n"
    );
    assert_eq!(
        log_of(&server, "talks", "limitBytes=8").await.unwrap(),
        "hello\nwo"
    );
    let none = "previous terminated container \"main\" in pod \"talks\" not found";
    assert_eq!(
        log_of(&server, "talks", "previous=true").await.unwrap_err(),
        none
    );
    let followed = {
        let following = log_of(&server, "talks", "follow=true&container=main");
        let ended = async { sleep(Duration::from_secs(20)).await };
        tokio::join!(following, ended).0
    };
    assert_eq!(followed.unwrap(), "hello\nworld\nexit code 3\n");
    let previous = log_of(&server, "talks", "previous=true").await;
    assert_eq!(previous.unwrap(), "hello\nworld\nexit code 3\n");
    let stamped = log_of(&server, "talks", "timestamps=true&tailLines=1")
        .await
        .unwrap();
    let (time, line) = stamped.split_once(' ').unwrap();
    assert!(
        time.parse::<jiff::Timestamp>().is_ok() && time.len() == 30,
        "{time}"
    );
    assert_eq!(line, "exit code 3\n");
    plane.shutdown().await;
}
