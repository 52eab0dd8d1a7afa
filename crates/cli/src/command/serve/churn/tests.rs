//! Tests the rate and the kinds of the changes that `--churn` makes.

use tokio::time::timeout;

use super::{super::seeding, *};

async fn seeded(wanted: &[&str]) -> (Server, Churn) {
    let server = Server::builder().build();
    let churn = seeded_on(&server, wanted).await;
    (server, churn)
}

async fn seeded_on(server: &Server, wanted: &[&str]) -> Churn {
    let wanted: Vec<_> = wanted.iter().map(|text| text.parse().unwrap()).collect();
    let mut rng = Rng::with_seed(server.revision());
    let populations = seeding::fill(server, &wanted, &mut rng).await.unwrap();
    Churn::new(server.clone(), populations, rng)
}

async fn run_for(churn: &mut Churn, rate: &str, period: Duration) {
    let rate = rate.parse().unwrap();
    timeout(period, churn.run(rate)).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn objects_are_changed_at_the_requested_rate() {
    for (rate, seconds, wanted) in [("500/s", 10, 5_000), ("30/m", 60, 30), ("5000/s", 1, 5_000)] {
        let (server, mut churn) = seeded(&["pods=100", "configmaps=50"]).await;
        let before = server.revision();
        run_for(&mut churn, rate, Duration::from_secs(seconds)).await;
        let written = server.revision() - before;
        assert!(
            written.abs_diff(wanted) <= wanted / 100 + 1,
            "{rate}: {written}"
        );
        assert_eq!(churn.tally().total(), written, "{rate}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_spread_evenly_over_time() {
    let (server, mut churn) = seeded(&["pods=10"]).await;
    let mut last = server.revision();
    for second in 0..5 {
        run_for(&mut churn, "20/s", Duration::from_secs(1)).await;
        let written = server.revision() - last;
        assert!((19..=20).contains(&written), "second {second}: {written}");
        last = server.revision();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_updated_and_deleted_at_a_constant_number() {
    let (server, mut churn) = seeded(&["pods=100", "nodes=10"]).await;
    let names = |plural: &str| -> Vec<String> {
        let name = |object: serde_json::Value| object["metadata"]["name"].to_string();
        server.list("v1", plural).into_iter().map(name).collect()
    };
    let before = names("pods");
    run_for(&mut churn, "1000/s", Duration::from_secs(2)).await;
    let tally = churn.tally();
    assert!(tally.created > 100 && tally.deleted > 100, "{tally}");
    assert!(
        tally.updated > 3 * (tally.created + tally.deleted),
        "{tally}"
    );
    assert_ne!(before, names("pods"));
    assert!((100..=101).contains(&names("pods").len()));
    assert!((10..=11).contains(&names("nodes").len()));
    let changed = server.list("v1", "pods").into_iter();
    let changed =
        changed.filter(|pod| pod["metadata"]["annotations"]["kubectl-informer/change"].is_string());
    assert!(changed.count() > 50);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_objects_stays_constant_over_restarts() {
    let server = Server::builder().build();
    for _ in 0..20 {
        let mut churn = seeded_on(&server, &["pods=10"]).await;
        // After the last change, ten or eleven objects remain.
        run_for(&mut churn, "10/s", Duration::from_millis(1_300)).await;
        let pods = server.list("v1", "pods").len();
        assert!((10..=11).contains(&pods), "{pods}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_by_another_client_is_replaced() {
    let (server, mut churn) = seeded(&["configmaps=40"]).await;
    for object in server.list("v1", "configmaps") {
        let text = |member: &str| object["metadata"][member].as_str().unwrap().to_owned();
        let key = format!("{}/{}", text("namespace"), text("name"));
        server.delete("v1", "configmaps", &key).unwrap();
    }
    run_for(&mut churn, "1000/s", Duration::from_secs(1)).await;
    let left = server.list("v1", "configmaps").len();
    assert!((40..=41).contains(&left), "{left}");
}

#[tokio::test(start_paused = true)]
async fn a_seed_makes_the_same_changes_again() {
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (server, mut churn) = seeded(&["configmaps=20"]).await;
        run_for(&mut churn, "100/s", Duration::from_secs(3)).await;
        let without_time = |mut object: serde_json::Value| {
            object["metadata"]["creationTimestamp"].take();
            object
        };
        let objects = server.list("v1", "configmaps").into_iter();
        ends.push(objects.map(without_time).collect::<Vec<_>>());
    }
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(start_paused = true)]
async fn changes_missed_by_a_suspended_machine_are_dropped() {
    let (server, mut churn) = seeded(&["pods=10"]).await;
    let before = server.revision();
    let mut running = Box::pin(churn.run("10/s".parse().unwrap()));
    assert!(timeout(Duration::from_secs(1), &mut running).await.is_err());
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(timeout(Duration::from_secs(1), &mut running).await.is_err());
    let written = server.revision() - before;
    assert!((19..=32).contains(&written), "{written}");
}

#[test]
fn a_rate_parses_as_printed_and_other_text_is_rejected() {
    for text in ["500/s", "30/m", "1000000/s"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in [
        "500",
        "0/s",
        "-1/s",
        "500/h",
        "x/s",
        "1.5/s",
        "1000001/s",
        "",
    ] {
        let error = text.parse::<Rate>().unwrap_err();
        assert!(
            error.contains("500/s or 30/m") && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}
