//! Tests the complete text of the error messages for invalid input.
//!
//! A message must contain the failed operation, the object, the reason, and what the user can do next.
//! Messages of failures that these tests can't cause, such as a full disk, are tested in the modules that
//! create the messages. In the expected text, `FILE` replaces the path of a temporary file, and `ADDRESS`
//! replaces a network address.

use std::fs;

use expect_test::expect;

use crate::binary::{Running, file, run};

/// Runs the program, and returns the single line that it writes to standard error.
///
/// In this line, replaces the first text of each pair in `replaced` with the second text. Asserts that the
/// exit code is `code`.
async fn error_line(arguments: &[&str], code: i32, replaced: &[(&str, &str)]) -> String {
    let mut line = run(arguments).await.with_code(code).err;
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    for (text, name) in replaced {
        line = line.replace(text, name);
    }
    line
}

/// Writes `text` to the temporary file `name`, and returns the path of the file.
fn written(name: &str, text: &str) -> String {
    let path = file(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Asserts that the command lines `typed` are rejected, and returns each with its error message.
async fn rejected(typed: &[&str]) -> String {
    let mut lines = Vec::new();
    for typed in typed {
        let arguments: Vec<_> = typed.split_whitespace().collect();
        let answer = error_line(&arguments, 2, &[]).await;
        lines.push([typed, "\n    ", &answer].concat());
    }
    lines.concat()
}

#[tokio::test]
async fn of_the_command_line_of_demo() {
    let typed = [
        "",
        "frobnicate",
        "demo --replicas many",
        "demo --replicas 5001",
        "demo --pods-fail -1",
        "demo --replicas 0 --pods-fail 1",
        "demo --without kubelet",
        "demo --cpu lots",
        "demo --deadline 0",
        "demo --context a",
        "demo --namespace a",
        "demo --act",
        "demo --kubeconfig f --without scheduler",
        "demo --kubeconfig f --pods-fail 2",
        "demo --kubeconfig f --request-log g",
    ];
    expect![[r#"

            error: no command; add demo or serve (see --help)
        frobnicate
            error: unrecognized subcommand 'frobnicate' (see --help)
        demo --replicas many
            error: invalid value 'many' for '--replicas <N>': invalid digit found in string (see --help)
        demo --replicas 5001
            error: invalid value '5001' for '--replicas <N>': 5001 is not in 0..=5000 (see --help)
        demo --pods-fail -1
            error: unexpected argument '-1' found (see --help)
        demo --replicas 0 --pods-fail 1
            error: --pods-fail needs a pod that can fail; set --replicas to 1 or more
        demo --without kubelet
            error: invalid value 'kubelet' for '--without <LOOP>' [possible values: deployment, replica-set, scheduler, node-agent] (see --help)
        demo --cpu lots
            error: invalid value 'lots' for '--cpu <QUANTITY>': "lots" is not a quantity; expected a number with an optional unit, such as 100m, 2 or 1.5Gi (see --help)
        demo --deadline 0
            error: invalid value '0' for '--deadline <SECONDS>': 0 is not in 1..=86400 (see --help)
        demo --context a
            error: the following required arguments were not provided: --kubeconfig <FILE> (see --help)
        demo --namespace a
            error: the following required arguments were not provided: --kubeconfig <FILE> (see --help)
        demo --act
            error: the following required arguments were not provided: --kubeconfig <FILE> (see --help)
        demo --kubeconfig f --without scheduler
            error: --without needs loops that act; add --act if the server has no control plane of its own, or omit --kubeconfig
        demo --kubeconfig f --pods-fail 2
            error: --pods-fail needs loops that act; add --act if the server has no control plane of its own, or omit --kubeconfig
        demo --kubeconfig f --request-log g
            error: the argument '--kubeconfig <FILE>' cannot be used with '--request-log <FILE>' (see --help)
    "#]].assert_eq(&rejected(&typed).await);
}

#[tokio::test]
async fn of_the_command_line_of_serve() {
    let typed = [
        "serve --port 8080",
        "serve --listen 8080",
        "serve --data-dir",
        "serve --seed-objects pods",
        "serve --seed-objects unicorns=3",
        "serve --seed-objects tokenreviews=3",
        "serve --seed-objects pods=0",
        "serve --seed-objects po=1 --seed-objects pods=2",
        "serve --churn 500/s",
        "serve --seed-objects pods=1 --churn fast",
        "serve --fault nonsense",
        "serve --watch-cache=maybe",
        "serve --default-watch-cache-size few",
        "serve --watch-cache-sizes pods",
        "serve --watch-cache-sizes unicorns#2",
        "serve --watch-cache-sizes pods#many",
        "serve --watch-cache-sizes po#1,pods#2",
        "serve --watch-cache=false --default-watch-cache-size 5",
    ];
    expect![[r#"
        serve --port 8080
            error: unexpected argument '--port' found (see --help)
        serve --listen 8080
            error: invalid value '8080' for '--listen <ADDRESS>': expected an IP address and a port, such as 127.0.0.1:8001 (see --help)
        serve --data-dir
            error: a value is required for '--data-dir <DIR>' but none was supplied (see --help)
        serve --seed-objects pods
            error: invalid value 'pods' for '--seed-objects <RESOURCE=N>': expected RESOURCE=N, such as pods=1000 (see --help)
        serve --seed-objects unicorns=3
            error: invalid value 'unicorns=3' for '--seed-objects <RESOURCE=N>': unknown resource "unicorns"; expected a name such as pods or deployments.apps (see --help)
        serve --seed-objects tokenreviews=3
            error: invalid value 'tokenreviews=3' for '--seed-objects <RESOURCE=N>': tokenreviews can't be seeded, because the server does not store them (see --help)
        serve --seed-objects pods=0
            error: invalid value 'pods=0' for '--seed-objects <RESOURCE=N>': "0" is not a number of pods from 1 to 10000000 (see --help)
        serve --seed-objects po=1 --seed-objects pods=2
            error: --seed-objects has pods twice; set one number per resource
        serve --churn 500/s
            error: the following required arguments were not provided: --seed-objects <RESOURCE=N> (see --help)
        serve --seed-objects pods=1 --churn fast
            error: invalid value 'fast' for '--churn <RATE>': expected changes per second or minute, such as 500/s or 30/m, at most 1000000/s (see --help)
        serve --fault nonsense
            error: invalid value 'nonsense' for '--fault <PLAN|@FILE>': fault plan, line 1, column 1: expected `*`, a verb (get, list, watch, create, update, patch, delete, deletecollection, other) or an action (cut, break, freeze, thaw, close, send, expire, restart, refuse, accept, seed), found `nonsense` (see --help)
        serve --watch-cache=maybe
            error: invalid value 'maybe' for '--watch-cache[=<BOOL>]' [possible values: true, false] (see --help)
        serve --default-watch-cache-size few
            error: invalid value 'few' for '--default-watch-cache-size <EVENTS>': invalid digit found in string (see --help)
        serve --watch-cache-sizes pods
            error: invalid value 'pods' for '--watch-cache-sizes <RESOURCE#EVENTS>': expected RESOURCE#EVENTS, such as pods#1000 (see --help)
        serve --watch-cache-sizes unicorns#2
            error: invalid value 'unicorns#2' for '--watch-cache-sizes <RESOURCE#EVENTS>': unknown resource "unicorns"; expected a name such as pods or deployments.apps (see --help)
        serve --watch-cache-sizes pods#many
            error: invalid value 'pods#many' for '--watch-cache-sizes <RESOURCE#EVENTS>': "many" is not a number of events, such as 1000 (see --help)
        serve --watch-cache-sizes po#1,pods#2
            error: --watch-cache-sizes has pods twice; set one size per resource
        serve --watch-cache=false --default-watch-cache-size 5
            error: --watch-cache=false disables the caches, so they have no size; omit it, or omit --default-watch-cache-size and --watch-cache-sizes
    "#]].assert_eq(&rejected(&typed).await);
}

/// Returns a kubeconfig with a cluster at `address`, a user, and the additional YAML `rest`.
fn kubeconfig(address: &str, rest: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]
users: [{{name: u, user: {{token: s3cret}}}}]
{rest}
"
    )
}

#[tokio::test]
async fn of_a_kubeconfig() {
    let contexts = "contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: d, user: u}}]";
    let other = format!("{contexts}\ncurrent-context: c");
    let broken = format!("{contexts}\ncurrent-context: b");
    let texts = [
        kubeconfig("127.0.0.1:1", ""),
        kubeconfig("127.0.0.1:1", contexts),
        kubeconfig("127.0.0.1:1", &other),
        kubeconfig("127.0.0.1:1", &broken),
        "[s3cret\n".to_owned(),
    ];
    let mut lines = error_line(&["demo", "--kubeconfig", "no/such/file"], 1, &[]).await;
    for (number, text) in texts.iter().enumerate() {
        let path = written(&format!("messages-{number}.yaml"), text);
        let arguments = ["demo", "--kubeconfig", &path];
        lines += &error_line(&arguments, 1, &[(&path, "FILE")]).await;
    }
    expect![[r#"
        error: can't read the kubeconfig no/such/file: No such file or directory (os error 2); name another file with --kubeconfig
        error: no contexts in the kubeconfig FILE; name another file with --kubeconfig, or omit --kubeconfig to use an embedded server
        error: no current context in the kubeconfig FILE; run "kubectl config use-context NAME --kubeconfig FILE", or add --context with one of: a, b
        error: no context "c" in the kubeconfig FILE; add --context with one of: a, b
        error: can't use the kubeconfig FILE: failed to load the cluster of context: d; correct it, or name another file with --kubeconfig
        error: can't parse the kubeconfig FILE: failed to parse kubeconfig YAML: error: line 1 column 1: unclosed bracket '['; name another file with --kubeconfig
    "#]].assert_eq(&lines);
}

#[tokio::test]
async fn of_an_api_server() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let context = "contexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a";
    let path = written("messages-unreachable.yaml", &kubeconfig(&address, context));
    let arguments = ["demo", "--kubeconfig", &path];
    let mut lines = error_line(&arguments, 1, &[(&address, "ADDRESS")]).await;

    let path = file("messages-served.yaml");
    let path = path.to_str().unwrap();
    let flags = [
        "serve",
        "--kubeconfig-out",
        path,
        "--fault",
        "create deployments: 403 x1",
    ];
    let mut server = Running::start(&flags);
    let line = server.line_with("API server:").await;
    let (_, address) = line.split_once("http://").unwrap();
    server.line_with("Ctrl-C").await;
    let replaced = [(address, "ADDRESS")];
    let arguments = ["demo", "--kubeconfig", path, "--namespace", "nowhere"];
    lines += &error_line(&arguments, 1, &replaced).await;
    let arguments = ["demo", "--kubeconfig", path];
    lines += &error_line(&arguments, 1, &replaced).await;
    server.end_by("-INT").await.with_code(130);
    expect![[r#"
        error: can't reach the API server at http://ADDRESS/: Connection refused (os error 111); check that it runs, and the address in the kubeconfig
        error: namespace "nowhere" does not exist on http://ADDRESS/; create it, or name another with --namespace
        error: can't create a Deployment: the server rejected the request: forbidden; check the permissions of the user in the kubeconfig
    "#]].assert_eq(&lines);
}

#[tokio::test]
async fn of_a_demo_that_does_not_complete() {
    // On a busy machine the caches need more than one second, and the error would be another.
    let arguments = ["demo", "--replicas", "1", "--cpu", "64", "--deadline", "5"];
    let mut lines = error_line(&arguments, 1, &[]).await;
    let arguments = ["demo", "--replicas", "0", "--request-log", "no/such/file"];
    lines += &error_line(&arguments, 1, &[]).await;
    expect![[r#"
        error: the demo did not complete: pods are bound to a node (0 of 1), which is the task of the scheduler loop; the scheduler leaves it Pending: 0/2 nodes are available: 2 insufficient cpu; request less with --cpu or --replicas
        error: can't write the request log no/such/file: No such file or directory (os error 2); name a file in a writable directory with --request-log
    "#]].assert_eq(&lines);
}

#[tokio::test]
async fn of_an_address_or_a_file_of_the_server() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["serve", "--listen", &address];
    let mut lines = error_line(&arguments, 1, &[(&address, "ADDRESS")]).await;
    lines += &error_line(&["serve", "--listen", "0.0.0.0:8001"], 1, &[]).await;

    let mine = written("messages-mine.yaml", "mine");
    let below = format!("{mine}/below");
    let replaced = [(mine.as_str(), "FILE")];
    for (flag, value) in [
        ("--kubeconfig-out", &mine),
        ("--kubeconfig-out", &below),
        ("--data-dir", &mine),
        ("--data-dir", &below),
    ] {
        lines += &error_line(&["serve", flag, value], 1, &replaced).await;
    }
    expect![[r#"
        error: can't listen on ADDRESS: the port is in use; stop the program that uses it, or use a free port with --listen 127.0.0.1:0
        error: can't listen on 0.0.0.0:8001: other machines could reach it, and there is no authentication; use --listen 127.0.0.1:8001
        error: can't write the kubeconfig FILE: the file exists, and kubectl-informer did not write it; name a new file with --kubeconfig-out
        error: can't write the kubeconfig FILE/below: Not a directory (os error 20); name a file in a writable directory with --kubeconfig-out
        error: can't open the data directory FILE: it is not a directory; name an existing or a new directory with --data-dir
        error: can't open the data directory FILE/below: it is not a directory; name an existing or a new directory with --data-dir
    "#]].assert_eq(&lines);
}

#[tokio::test]
async fn of_a_fault_plan() {
    let plan = written("messages.plan", "seed 7\nlist pods: 42\n");
    let at_plan = format!("@{plan}");
    let replaced = [(plan.as_str(), "FILE")];
    let mut lines = String::new();
    for value in [at_plan.as_str(), "@no/such.plan", "restart at 900"] {
        lines += &error_line(&["serve", "--fault", value], 1, &replaced).await;
    }
    expect![[r#"
        error: FILE: fault plan, line 2, column 12: expected an HTTP status from 400 to 599, or one of reset, refuse, delay, cut, break, freeze, split, drop, duplicate, swap, garble, spoil, retype, send, found `42`
        error: can't read the fault plan no/such.plan: No such file or directory (os error 2); name another file with --fault @FILE
        error: --fault: fault plan, line 1, column 1: Timeout: Too large resource version: 900, current: 1
    "#]].assert_eq(&lines);
}
