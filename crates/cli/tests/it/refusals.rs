//! Tests that the program reports every failure as one line and exits with a nonzero code.
//!
//! The line must also state what the user can do next.

use crate::binary::{Ended, file, run};

/// Writes a kubeconfig for the server at `address` to a temporary file, and returns the path.
fn kubeconfig(name: &str, address: &str) -> String {
    let path = file(name);
    let text = format!(
        "apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
current-context: here
"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn one_line(ended: &Ended, says: &[&str]) {
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.err.starts_with("error: "), "{}", ended.err);
    for word in says {
        assert!(ended.err.contains(word), "{word:?} is not in {}", ended.err);
    }
}

#[tokio::test]
async fn the_error_names_a_missing_kubeconfig() {
    let ended = run(&["demo", "--kubeconfig", "no/such/file"])
        .await
        .with_code(1);
    one_line(&ended, &["no/such/file", "--kubeconfig"]);
}

#[tokio::test]
async fn the_error_names_a_malformed_kubeconfig_without_its_content() {
    let path = file("nonsense.yaml");
    std::fs::write(&path, "[secret-token\n").unwrap();
    let path = path.to_str().unwrap();
    let ended = run(&["demo", "--kubeconfig", path]).await.with_code(1);
    one_line(&ended, &["can't parse the kubeconfig", "--kubeconfig"]);
    assert!(!ended.err.contains("secret-token"), "{}", ended.err);
}

#[tokio::test]
async fn an_unknown_context_is_rejected_with_the_existing_ones() {
    let path = kubeconfig("context.yaml", "127.0.0.1:1");
    let arguments = ["demo", "--kubeconfig", &path, "--context", "there"];
    let ended = run(&arguments).await.with_code(1);
    one_line(&ended, &["\"there\"", "--context", "here"]);
}

#[tokio::test]
async fn a_missing_server_is_reported_as_unreachable() {
    // This port was free just before: no server listens on it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let path = kubeconfig("unreachable.yaml", &address);
    let ended = run(&["demo", "--kubeconfig", &path]).await.with_code(1);
    one_line(&ended, &["can't reach", &address, "check that it runs"]);
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_the_next_step() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(&["serve", "--listen", &address]).await.with_code(1);
    one_line(&ended, &["the port is in use", "--listen 127.0.0.1:0"]);
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_rejected() {
    let ended = run(&["serve", "--listen", "localhost"]).await.with_code(2);
    one_line(&ended, &["--listen", "127.0.0.1:8001"]);
    let ended = run(&["serve", "--listen", "0.0.0.0:0"]).await.with_code(1);
    one_line(&ended, &["no authentication", "--listen 127.0.0.1:0"]);
}

#[tokio::test]
async fn resources_that_cannot_be_seeded_or_changed_are_rejected() {
    for (flags, says) in [
        (&["--seed-objects", "unicorns=3"][..], "\"unicorns\""),
        (&["--seed-objects", "pods=0"], "from 1 to"),
        (
            &["--seed-objects", "pods=1", "--churn", "5/h"],
            "500/s or 30/m",
        ),
        (&["--churn", "5/s"], "--seed-objects"),
    ] {
        let ended = run(&[&["serve"], flags].concat()).await.with_code(2);
        one_line(&ended, &[says]);
    }
}

#[tokio::test]
async fn an_error_in_a_fault_plan_has_its_position() {
    let typed = ["serve", "--fault", "watch pods: cut after 3 lemons"];
    let ended = run(&typed).await.with_code(2);
    one_line(&ended, &["--fault", "line 1, column 25"]);
    let plan = file("mistaken.plan");
    std::fs::write(&plan, "seed 7\nlist pods: 42\n").unwrap();
    let at_plan = format!("@{}", plan.to_str().unwrap());
    let ended = run(&["serve", "--fault", &at_plan]).await.with_code(1);
    one_line(&ended, &["mistaken.plan", "line 2, column 12"]);
    let ended = run(&["serve", "--fault", "@no/such.plan"]).await;
    one_line(&ended.with_code(1), &["no/such.plan", "--fault @FILE"]);
    let ended = run(&["serve", "--fault", "restart at 900"]).await;
    one_line(&ended.with_code(1), &["--fault", "line 1, column 1"]);
}

#[tokio::test]
async fn a_kubeconfig_of_another_program_is_not_overwritten() {
    let path = file("precious.yaml");
    std::fs::write(&path, "mine").unwrap();
    let arguments = ["serve", "--kubeconfig-out", path.to_str().unwrap()];
    let ended = run(&arguments).await.with_code(1);
    one_line(&ended, &["did not write it", "--kubeconfig-out"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[tokio::test]
async fn an_unknown_flag_is_rejected_in_one_line() {
    for arguments in [
        &["demo", "--replicas", "-1"][..],
        &["demo", "--without", "kubelet"],
        &["demo", "--act"],
        &["frobnicate"],
        &[],
    ] {
        let ended = run(arguments).await.with_code(2);
        one_line(&ended, &["--help"]);
    }
}
