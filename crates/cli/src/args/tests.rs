//! Tests of the command line.

use super::*;

fn typed(line: &str) -> Asked {
    read_from(std::iter::once("kubectl-informer").chain(line.split_whitespace()))
}

fn demo(line: &str) -> demo::Options {
    match typed(line) {
        Asked::For(Wanted {
            command: Command::Demo(options),
            ..
        }) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    match typed(line) {
        Asked::Wrongly(what) => what,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn one_pod_fails_if_the_demo_runs_pods() {
    assert_eq!(demo("demo").pods_fail, 1);
    assert_eq!(demo("demo --pods-fail 0").pods_fail, 0);
    assert_eq!(demo("demo --replicas 0").pods_fail, 0);
    assert_eq!(demo("demo --kubeconfig f").pods_fail, 0);
    assert_eq!(demo("demo --kubeconfig f --act").pods_fail, 1);
}

#[test]
fn the_deadline_grows_with_the_number_of_pods() {
    assert_eq!(demo("demo --replicas 0").deadline, DEADLINE);
    assert!(demo("demo --replicas 500").deadline > DEADLINE);
    assert_eq!(demo("demo --deadline 3").deadline, Duration::from_secs(3));
}

#[test]
fn invalid_arguments_are_rejected_in_one_line_with_the_valid_form() {
    let rows = [
        ("", "demo or serve"),
        ("demo --replicas many", "--replicas"),
        ("demo --replicas 5001", "5000"),
        ("demo --without kubelet", "node-agent"),
        ("demo --namespace a", "--kubeconfig"),
        ("demo --act", "--kubeconfig"),
        ("demo --kubeconfig f --without scheduler", "--act"),
        ("demo --kubeconfig f --pods-fail 2", "--act"),
        ("demo --replicas 0 --pods-fail 1", "set --replicas to 1"),
        ("demo --cpu lots", "100m"),
        ("serve --listen 8080", "127.0.0.1:8001"),
        ("serve --port 8080", "--port"),
        ("serve --seed-objects unicorns=3", "\"unicorns\""),
        ("serve --seed-objects pods", "pods=1000"),
        (
            "serve --seed-objects po=1 --seed-objects pods=2",
            "pods twice",
        ),
        ("serve --churn 500/s", "--seed-objects"),
        ("serve --seed-objects pods=1 --churn fast", "500/s or 30/m"),
        ("serve --fault nonsense", "line 1, column 1"),
        ("serve --data-dir", "--data-dir"),
        ("serve --watch-cache=maybe", "--watch-cache"),
        ("serve --watch-cache-sizes pods", "pods#1000"),
        (
            "serve --watch-cache-sizes pods#1,unicorns#2",
            "\"unicorns\"",
        ),
        ("serve --watch-cache-sizes po#1,pods#2", "pods twice"),
        (
            "serve --watch-cache=false --watch-cache-sizes pods#1",
            "omit it, or omit --default-watch-cache-size",
        ),
        (
            "serve --watch-cache=false --default-watch-cache-size 5",
            "omit it, or omit --default-watch-cache-size",
        ),
        ("watch pods", "watch"),
    ];
    for (line, says) in rows {
        let what = refusal(line);
        assert!(what.contains(says), "{line}: {what}");
        assert!(!what.contains('\n'), "{line}: {what}");
    }
}

#[test]
fn serve_options_are_parsed() {
    let line = "serve --seed-objects pods=10 --seed-objects cm=5 --churn 30/m --fault @a.plan --controllers";
    let Asked::For(Wanted {
        command: Command::Serve(options),
        ..
    }) = typed(line)
    else {
        panic!("{line}");
    };
    let seeded: Vec<_> = options
        .seed_objects
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(seeded, ["10 pods", "5 configmaps"]);
    assert_eq!(
        options.churn.map(|rate| rate.to_string()).as_deref(),
        Some("30/m")
    );
    assert!(matches!(options.faults, Some(FaultPlan::File(path)) if path.as_os_str() == "a.plan"));
    assert_eq!(options.controllers, Loop::ALL.iter().copied().collect());
}

#[test]
fn watch_cache_flags_match_kube_apiserver() {
    let caches = |line: &str| match typed(line) {
        Asked::For(Wanted {
            command: Command::Serve(options),
            ..
        }) => options.watch_caches,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(caches("serve"), WatchCaches::default());
    assert_eq!(caches("serve --watch-cache"), WatchCaches::default());
    assert_eq!(caches("serve --watch-cache=true"), WatchCaches::default());
    let off = caches("serve --watch-cache=false");
    assert_eq!(off.default, WatchCache::Off);
    let line = "serve --default-watch-cache-size 50 --watch-cache-sizes pods#9,nodes#0 --watch-cache-sizes deploy#7";
    let expected = WatchCaches {
        default: WatchCache::Size(50),
        sizes: ["pods#9", "nodes#0", "deployments.apps#7"]
            .map(|size| size.parse().unwrap())
            .into(),
    };
    assert_eq!(caches(line), expected);
}

#[test]
fn help_and_version_are_not_errors() {
    for line in ["--help", "demo --help", "--version"] {
        assert!(matches!(typed(line), Asked::Help(_)), "{line}");
    }
}

#[test]
fn control_loops_are_selected_by_name() {
    for (text, expected) in [
        ("*", Loop::ALL),
        (
            "deployment,node-agent",
            &[Loop::Deployment, Loop::NodeAgent],
        ),
        (
            "deployment-controller,replicaset",
            &[Loop::Deployment, Loop::ReplicaSet],
        ),
        (
            "*,-job,-disruption,-scheduler",
            &[Loop::Deployment, Loop::ReplicaSet, Loop::NodeAgent],
        ),
    ] {
        let expected: BTreeSet<Loop> = expected.iter().copied().collect();
        assert_eq!(loops(text).unwrap().0, expected, "{text}");
    }
    let error = loops("deployment,jobs").unwrap_err();
    assert_eq!(
        error,
        "no control loop is named \"jobs\"; there are deployment, replica-set, job, disruption, scheduler, node-agent, and * for all"
    );
}
