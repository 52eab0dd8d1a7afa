//! Tests that writes stay consistent on a full disk, after a loss of power, and after a failed batch.

use super::*;

/// Repeats a write on a disk that fails after n calls, for n = 0, 1, 2, …, until the write succeeds.
#[tokio::test(start_paused = true)]
async fn a_full_disk_rejects_writes_and_loses_none() {
    let scratch = Scratch::new("full");
    let medium = Medium::sound();
    let server = scratch.open(&medium);
    server.create(config_map("kept", 0)).unwrap();
    server.create(config_map("doomed", 0)).unwrap();
    let mut value = 0;
    for calls in 0.. {
        let revision = server.revision();
        medium.fail_after(calls);
        let change = config_map("kept", value + 1);
        let (code, answer) = ask(server.clone(), Method::PUT, "kept", change).await;
        if code == 200 {
            assert!(calls > 2, "a write consists of several disk calls");
            value += 1;
            break;
        }
        assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")));
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with("Internal error occurred: the write could not be stored: "));
        let deleted = ask(server.clone(), Method::DELETE, "doomed", json!({})).await;
        assert_eq!(deleted.0, 500, "still full");
        assert_eq!(server.revision(), revision);
        assert_eq!(server.list("v1", "configmaps").len(), 2);
        medium.heal();
        // Another write, which must correct the rejected one on the disk.
        server
            .patch(
                "v1",
                "namespaces",
                "default",
                json!({"metadata": {"labels": {"n": calls.to_string()}}}),
            )
            .unwrap();
        let copied = Scratch::new("full-copy");
        std::fs::create_dir(&copied.0).unwrap();
        std::fs::copy(
            scratch.0.join("objects.redb"),
            copied.0.join("objects.redb"),
        )
        .unwrap();
        let restarted = copied.open(&Medium::sound());
        assert_eq!(stored(&restarted), stored(&server));
        assert_eq!(restarted.revision(), server.revision());
    }
    medium.heal();
    assert_eq!(stored(&server)[1], ("kept".to_owned(), value.to_string()));
}

/// The node port of a service that was not stored is free.
#[test]
fn a_service_that_was_not_stored_has_no_node_port() {
    let scratch = Scratch::new("port");
    let medium = Medium::sound();
    let server = scratch.open(&medium);
    let create = |name: &str| {
        let metadata = json!({"name": name, "namespace": "default"});
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        server.create(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}),
        )
    };
    create("a").unwrap();
    medium.fail_after(0);
    create("b").unwrap_err();
    medium.heal();
    let stored = create("c").unwrap();
    assert_eq!(stored["spec"]["ports"][0]["nodePort"], 30001);
}

/// Simulates a loss of power during or after each of 60 writes.
#[test]
fn acknowledged_writes_survive_a_loss_of_power() {
    let (medium, scratch) = (Medium::sound(), Scratch::new("power"));
    *medium.survivor.lock() = Some(Survivor::new());
    let server = scratch.open(&medium);
    let on_survivor = |with: &mut dyn FnMut(&mut Survivor)| {
        with(
            medium
                .survivor
                .lock()
                .as_mut()
                .expect("a loss of power is simulated"),
        );
    };
    let mut unfinished = 0;
    for nth in 0..60_u64 {
        let before = (stored(&server), server.revision());
        on_survivor(&mut |survivor| {
            survivor.calls_left = (nth % 2 == 1).then_some(nth / 4);
        });
        if nth % 5 == 4 {
            let name = format!("default/n{:02}", nth - 1);
            server.delete("v1", "configmaps", &name).unwrap();
        } else {
            server.create(config_map(&format!("n{nth:02}"), 0)).unwrap();
        }
        let after = (stored(&server), server.revision());
        let (mut file, mut is_answered) = (None, false);
        on_survivor(&mut |survivor| {
            is_answered = survivor.left.is_none();
            if is_answered {
                survivor.lose_power();
            }
            file = survivor.left.take();
        });
        let left = Scratch::new("power-left");
        std::fs::create_dir(&left.0).unwrap();
        std::fs::write(left.0.join("objects.redb"), file.unwrap()).unwrap();
        let restarted = left.open(&Medium::sound());
        let found = (stored(&restarted), restarted.revision());
        let is_unfinished = !is_answered && found == before;
        assert!(is_unfinished || found == after, "write {nth}: {found:?}");
        unfinished += u64::from(is_unfinished);
    }
    assert!((1..30).contains(&unfinished), "{unfinished}");
}

#[tokio::test(start_paused = true)]
async fn writes_accepted_after_a_failing_batch_fail_too() {
    let scratch = Scratch::new("behind");
    let medium = Medium::sound();
    let server = scratch.open(&medium);
    medium.fail_after(0);
    medium.heals_when_opened.store(true, Ordering::Relaxed);
    let calls = medium.calls.load(Ordering::Relaxed);
    let gate = medium.gate.lock();
    let mut first = pin!(create(&server, "a"));
    assert!(poll(first.as_mut()).is_pending());
    while medium.calls.load(Ordering::Relaxed) == calls {
        std::thread::yield_now();
    }
    // The first write is being stored. The second write is based on the first write.
    let change = ask(server.clone(), Method::PUT, "a", config_map("a", 1));
    let mut change = pin!(change);
    assert!(poll(change.as_mut()).is_pending());
    drop(gate);
    assert_eq!(first.await.0, 500);
    assert_eq!(change.await.0, 500);
    assert_eq!(
        create(&server, "a").await.0,
        201,
        "the object never existed"
    );
}
