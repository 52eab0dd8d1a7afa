//! Tables of the sizes; the rows are those of `rolling_test.go`, `sync_test.go` and `deployment_util_test.go`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn deployment(replicas: i32, surge: &Value, unavailable: &Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            },
            "template": {},
        },
    }))
    .unwrap()
}

fn set(name: &str, replicas: i32, available: i32) -> Set {
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {}},
            "status": {"replicas": replicas, "availableReplicas": available},
        }))
        .unwrap(),
    )
}

fn limits(replicas: i32, surge: i32, unavailable: i32) -> Limits {
    Limits::of(&deployment(replicas, &json!(surge), &json!(unavailable)))
}

#[test]
fn percentages_are_rounded_up_for_surge_and_down_for_unavailable() {
    for (replicas, surge, unavailable, expected) in [
        (2, "0%", "1%", (0, 1)),
        (1, "0%", "1%", (0, 1)),
        (2, "1%", "25%", (1, 0)),
        (1, "1%", "25%", (1, 0)),
        (2, "1%", "0%", (1, 0)),
        (10, "25%", "25%", (3, 2)),
        (10, "100%", "120%", (10, 10)),
        (0, "25%", "25%", (0, 0)),
    ] {
        let limits = Limits::of(&deployment(replicas, &json!(surge), &json!(unavailable)));
        let got = (limits.max_surge, limits.max_unavailable);
        assert_eq!(got, expected, "{replicas} {surge} {unavailable}");
    }
}

#[test]
fn the_new_set_grows_as_far_as_the_surge_permits() {
    for (surge, new, old, expected) in [
        (0, 0, 10, 0),
        (2, 0, 10, 2),
        (2, 5, 0, 10),
        (0, 10, 0, 10),
        (2, 20, 10, 10),
        (2, 2, 8, 4),
    ] {
        let limits = limits(10, surge, 1);
        assert_eq!(
            limits.next_size(new, old + new),
            expected,
            "{surge} {new} {old}"
        );
    }
}

#[test]
fn the_old_sets_shrink_as_far_as_enough_pods_are_available() {
    // Maximum unavailable, sizes and available pods of the old set and of the new one, and the next old size.
    for (unavailable, old, new, expected) in [
        (0, (10, 10), (0, 0), 10),
        (2, (10, 10), (0, 0), 8),
        (2, (10, 8), (0, 0), 8),
        (2, (10, 9), (0, 0), 8),
        (2, (10, 10), (2, 0), 8),
        (2, (10, 0), (2, 0), 8),
        (2, (10, 4), (2, 2), 6),
        (0, (10, 10), (1, 1), 9),
        (0, (10, 10), (1, 0), 10),
    ] {
        let limits = limits(10, 5, unavailable);
        let (old, new) = (set("old", old.0, old.1), set("new", new.0, new.1));
        let sizes = limits.shrink(&[Arc::clone(&old)], &new);
        assert_eq!(sizes, [expected], "{unavailable} {old:?} {new:?}");
    }
}

#[test]
fn unavailable_pods_of_any_old_set_go_first() {
    let old = [set("a", 3, 3), set("b", 4, 1)];
    let sizes = limits(5, 3, 1).shrink(&old, &set("new", 1, 1));
    // The three unavailable pods of b, and then one of the oldest set.
    assert_eq!(sizes, [2, 1]);
}

#[test]
fn a_change_of_replicas_in_a_rollout_is_distributed_by_size() {
    // Old replicas, new replicas, sizes by size, and the expected sizes; without surge.
    for (from, to, sizes, expected) in [
        (10, 12, vec![5, 5], vec![6, 6]),
        (10, 6, vec![5, 5], vec![3, 3]),
        (10, 20, vec![8, 2], vec![16, 4]),
        (10, 5, vec![8, 2], vec![4, 1]),
        (3, 10, vec![2, 1], vec![7, 3]),
        (10, 0, vec![7, 3], vec![0, 0]),
        (60, 1_000, vec![30, 20, 10], vec![500, 333, 167]),
    ] {
        let limits = limits(to, 0, 1);
        let annotated = |replicas: i32| {
            let mut set = ReplicaSet::clone(&set("set", replicas, replicas));
            let before = [(MAX_REPLICAS.to_owned(), from.to_string())];
            set.metadata.annotations = Some(before.into());
            Arc::new(set)
        };
        let sets: Vec<Set> = sizes.iter().copied().map(annotated).collect();
        assert_eq!(
            limits.proportional(&sets, from),
            expected,
            "{from} to {to}: {sizes:?}"
        );
    }
}
