//! Tests of saving a cache: what triggers a save, and the content and permissions of the files.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_killed_program_starts_from_the_store_saved_on_demand() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("killed");
    let informer = run(warm(&server, &path));
    informer.caught_up(&server).await;
    let one = informer.pods.save().await.unwrap();
    assert_eq!(
        (one.objects, one.bytes),
        (1, fs::metadata(&path).unwrap().len())
    );
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    informer.kill().await;
    let informer = run(warm(&server, &path));
    informer.caught_up(&server).await;
    assert_eq!(started(&informer), "warm: 1@1");
    assert_eq!(informer.pods.indexer().len(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_is_saved_periodically_if_a_period_is_set() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("every");
    let pause = Duration::from_secs(600);
    let informer = run(builder(&server).warm_start(saved(&path).every(pause)));
    informer.caught_up(&server).await;
    sleep(Duration::from_secs(599)).await;
    assert!(!path.exists());
    for names in [&["a"][..], &["a", "b"]] {
        sleep(pause).await;
        let text = fs::read_to_string(&path).unwrap();
        for name in ["a", "b"] {
            let there = text.contains(&format!(r#""name":"{name}""#));
            assert_eq!(there, names.contains(&name), "{name}");
        }
        let _ = server.create(pod("b"));
    }
    informer.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_save_period_of_zero_disables_periodic_saves() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("every-zero");
    let informer = run(builder(&server).warm_start(saved(&path).every(Duration::ZERO)));
    informer.caught_up(&server).await;
    sleep(Duration::from_secs(1)).await;
    assert!(!path.exists());
    informer.stop().await;
    assert!(path.exists());
}

#[tokio::test(start_paused = true)]
async fn a_save_during_changes_is_a_consistent_snapshot_from_which_later_changes_are_replayed() {
    for queue in ["in order", "delta fifo"] {
        let server = Server::builder().rng_seed(1).build();
        let path = file(&format!("churn-{queue}"));
        let informer = || match queue {
            "in order" => warm(&server, &path),
            _ => warm(&server, &path).queue(DeltaFifo::new()),
        };
        let running = run(informer());
        running.pods.wait_for_sync().deadline(LONG).await.unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut relists = 0;
        for _ in 0..60 {
            for _ in 0..rng.usize(..20) {
                let name = format!("p{}", rng.usize(..8));
                // A creation or a deletion, whichever applies, is a change.
                let _ = match rng.u8(..3) {
                    0 => server.create(pod(&name)).map(drop),
                    1 => server.update(labelled(&name, "new")).map(drop),
                    _ => server
                        .delete("v1", "pods", &format!("default/{name}"))
                        .map(drop),
                };
                tokio::task::yield_now().await;
            }
            if rng.bool() {
                // A relist during the save.
                server.faults().expire_history();
                server.faults().break_watches();
                relists += 1;
            }
            running.pods.save().await.unwrap();
            let again = run(informer());
            let heard = Replay::default();
            again.pods.handler(heard.clone()).register().unwrap();
            again.caught_up(&server).await;
            assert!(started(&again).starts_with("warm"), "{}", started(&again));
            heard.ends_as(&again.pods, &server);
            again.kill().await;
        }
        assert!(relists > 20, "{relists} relists of {queue}");
        running.stop().await;
    }
}

/// A handler that records each object's last revision.
///
/// Panics if an event does not follow from the object's earlier events, such as a second `Added`.
#[derive(Clone, Default)]
struct Replay(Arc<Mutex<BTreeMap<String, u64>>>);

impl EventHandler<Pod> for Replay {
    async fn handle(&mut self, event: Event<Pod>) {
        let mut known = self.0.lock();
        let revision = |object: &Object<Pod>| object.revision().as_u64().unwrap();
        match event {
            Event::Added { object, .. } => {
                let old = known.insert(object.name().to_owned(), revision(&object));
                assert_eq!(old, None, "{object:?} is added twice");
            }
            Event::Updated { old, new, .. } => {
                assert!(revision(&old) < revision(&new), "{old:?} → {new:?}");
                let before = known.insert(new.name().to_owned(), revision(&new));
                assert_eq!(before, Some(revision(&old)), "{new:?}");
            }
            Event::Deleted(deleted) => {
                let name = deleted.object_name();
                assert!(
                    known.remove(name.name()).is_some(),
                    "{name} is deleted twice"
                );
            }
            Event::Synced => {}
        }
    }
}

impl Replay {
    fn ends_as(&self, pods: &SharedInformer<Pod>, server: &Server) {
        let cache = pods.indexer().snapshot();
        let cache = cache
            .iter()
            .map(|object| (object.name(), object.revision().to_string()));
        let cache: Vec<_> = cache.collect();
        let stored = server.list("v1", "pods");
        let stored = stored.iter().map(|pod| {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap();
            (text("name"), text("resourceVersion").to_owned())
        });
        let stored: Vec<_> = stored.collect();
        assert_eq!(cache, stored);
        let heard = self.0.lock();
        let heard = heard
            .iter()
            .map(|(name, revision)| (&**name, revision.to_string()));
        assert_eq!(heard.collect::<Vec<_>>(), stored);
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn only_the_owner_can_read_a_saved_store() {
    use std::os::unix::fs::PermissionsExt;

    let server = Server::builder().seed([pod("a")]).build();
    let folder = folder("modes").join("inner");
    let pods = builder(&server).warm_start(SavedStore::in_directory(&folder, "1"));
    save(&server, pods).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(folder.parent().unwrap()), 0o700);
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 2, "the store and its lock");
}

#[tokio::test(start_paused = true)]
async fn a_directory_has_one_file_per_kind_and_scope() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let folder = folder("directory");
    let informer = |source: ListWatch<Pod>| {
        let saved = SavedStore::in_directory(&folder, "1");
        run(SharedInformer::builder(source).warm_start(saved))
    };
    let pods = || ListWatch::<Pod>::new(server.client());
    for expected in ["cold: no store is saved there", "warm: "] {
        let all = informer(pods());
        let one = informer(pods().fields("metadata.name=a"));
        for (informer, count) in [(&all, 2), (&one, 1)] {
            informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
            assert!(
                started(informer).starts_with(expected),
                "{}",
                started(informer)
            );
            assert_eq!(informer.pods.indexer().len(), count);
        }
        all.stop().await;
        one.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_and_their_metadata_are_not_saved_unless_allowed() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"}, "stringData": {"k": "v"},
    });
    let server = Server::builder().seed([secret]).build();
    let path = folder("secrets").join("secrets.jsonl");
    let refused = Some(WarmStart::Cold {
        reason: ColdReason::SecretsRefused,
    });

    let secrets = ListWatch::<Secret>::new(server.client());
    let builder = SharedInformer::<Secret>::builder(secrets.clone());
    let (informer, controller) = builder.warm_start(saved(&path)).build();
    let refusal = async {
        informer.wait_for_sync().await.unwrap();
        informer.save().await.unwrap_err().to_string()
    };
    let said = Mutex::new(String::new());
    controller
        .run(async { *said.lock() = refusal.await })
        .await
        .unwrap();
    assert!(
        said.lock().contains("SavedStore::allow_secrets"),
        "{}",
        said.lock()
    );
    assert_eq!(informer.status().get().warm_start, refused);

    let metadata = ListWatch::<PartialObjectMeta<Secret>>::new(server.client());
    let builder = SharedInformer::<PartialObjectMeta<Secret>>::builder(metadata);
    let (informer, controller) = builder.warm_start(saved(&path)).build();
    controller
        .run(async { informer.wait_for_sync().await.unwrap() })
        .await
        .unwrap();
    assert_eq!(informer.status().get().warm_start, refused);
    assert!(!path.exists());

    for is_warm in [false, true] {
        let builder = SharedInformer::<Secret>::builder(secrets.clone());
        let (informer, controller) = builder.warm_start(saved(&path).allow_secrets()).build();
        controller
            .run(async { informer.wait_for_sync().await.unwrap() })
            .await
            .unwrap();
        let warm_start = informer.status().get().warm_start;
        assert_eq!(
            matches!(warm_start, Some(WarmStart::Warm { objects: 1, .. })),
            is_warm
        );
    }
    let exposed = "dg=="; // "v" in base64
    assert!(fs::read_to_string(&path).unwrap().contains(exposed));
}

#[tokio::test(start_paused = true)]
async fn a_save_without_a_saved_store_is_an_error() {
    let server = Server::builder().build();
    let informer = run(builder(&server));
    assert!(matches!(
        informer.pods.save().await,
        Err(SaveError::NoSavedStore)
    ));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transformed_object_is_saved_and_not_transformed_again() {
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let path = file("transform");
    let calls = Arc::new(AtomicUsize::new(0));
    let informer = || {
        let calls = Arc::clone(&calls);
        warm(&server, &path).transform(move |pod| {
            calls.fetch_add(1, Ordering::Relaxed);
            pod.spec = None;
            // The transform runs after identity and revision were read.
            pod.metadata.resource_version = None;
        })
    };
    save(&server, informer()).await;
    let again = run(informer());
    again.caught_up(&server).await;
    assert_eq!(started(&again), "warm: 1@1");
    let cached = again
        .pods
        .lister()
        .find(&ObjectName::namespaced("default", "a"))
        .unwrap();
    assert_eq!(cached.revision().as_u64(), Some(1));
    assert_eq!(cached.labels().get("app"), Some("web"));
    assert!(cached.live().unwrap().spec.is_none());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_object_stays_broken_after_a_warm_start() {
    let server = Server::builder()
        .seed([labelled("a", "web"), pod("b")])
        .build();
    let path = file("broken");
    let informer = || {
        warm(&server, &path).try_transform(|pod| match pod.metadata.name.as_deref() {
            Some("a") if pod.metadata.labels.is_some() => Err("not this one".to_owned()),
            _ => Ok(()),
        })
    };
    save(&server, informer()).await;
    let again = run(informer());
    let trace = Trace::default();
    trace.listen(&again.pods);
    again.caught_up(&server).await;
    assert_eq!(started(&again), "warm: 2@2");
    let snapshot = again.pods.indexer().snapshot();
    let broken: Vec<_> = snapshot
        .broken()
        .map(|(_, error)| error.to_string())
        .collect();
    assert_eq!(
        broken,
        ["default/a can't be decoded: the transform failed: not this one at ."]
    );
    let broken = snapshot
        .get(&ObjectName::namespaced("default", "a"))
        .unwrap();
    assert_eq!(broken.labels().get("app"), Some("web"));
    assert!(!broken.uid().is_empty());
    assert_eq!(broken.revision().as_u64(), Some(1));
    server.update(pod("a")).unwrap();
    again.caught_up(&server).await;
    assert_eq!(
        trace.take(),
        "add default/b@2 (initial)\nsynced\nadd default/a@3\n"
    );
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_of_a_warm_start_leaves_no_task_and_a_whole_store() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let path = file("dropped");
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    save(&server, warm(&server, &path)).await;
    sleep(Duration::from_secs(1)).await;
    let baseline = tasks();
    let mut complete = false;
    for at in 0..200 {
        {
            let (pods, controller) = warm(&server, &path).build();
            let synced = pods.wait_for_sync();
            let mut running = pin!(controller.run(async { synced.await.unwrap() }));
            for step in 0..at {
                complete = running.as_mut().now_or_never().is_some();
                if complete {
                    break;
                }
                // The pauses between the first polls only run other tasks; later ones give the disk time.
                if step < 60 {
                    yield_now().await;
                } else {
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(tasks(), baseline, "dropped at {at}");
        if complete {
            break;
        }
    }
    assert!(complete, "no run completed");
    let informer = run(warm(&server, &path));
    informer.caught_up(&server).await;
    assert_eq!(started(&informer), "warm: 2@2");
    informer.stop().await;
}

/// Returns a [`ListWatch`] whose requests panic while `panics` is true.
fn panicking(server: &Server, panics: &Arc<AtomicBool>) -> ListWatch<Pod> {
    let panics = Arc::clone(panics);
    ListWatch::new(server.client()).tweak_list_options(move |_| {
        assert!(!panics.load(Ordering::Relaxed), "a bad tweak");
    })
}

#[tokio::test(start_paused = true)]
async fn a_failed_informer_saves_nothing_whichever_part_fails() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("failed");
    let check = Duration::from_secs(60);
    let failures = [
        ("the reflector of pods", Duration::ZERO),
        ("a check, a save or a load", check),
    ];
    for (part, check) in failures {
        let panics = Arc::new(AtomicBool::new(false));
        let (pods, controller) = SharedInformer::<Pod>::builder(panicking(&server, &panics))
            .name("pods")
            .rng_seed(1)
            .warm_start(saved(&path))
            .consistency_check(check)
            .build();
        let steps = async {
            pods.wait_for_sync().deadline(LONG).await.unwrap();
            panics.store(true, Ordering::Relaxed);
            if check.is_zero() {
                server.faults().cut_watches();
            }
            std::future::pending::<()>().await;
        };
        let error = timeout(LONG, controller.run(steps)).await.unwrap();
        let expected = format!("informer pods (v1 Pod) failed: {part} panicked: a bad tweak");
        assert_eq!(error.unwrap_err().to_string(), expected);
        assert!(!path.exists(), "{part}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_during_the_load_fails_the_informer_before_any_reflector_runs() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("failed-load");
    save(&server, warm(&server, &path)).await;
    let panics = Arc::new(AtomicBool::new(false));
    let (_pods, controller) = SharedInformer::<Pod>::builder(panicking(&server, &panics))
        .name("pods")
        .warm_start(saved(&path))
        .build();
    panics.store(true, Ordering::Relaxed);
    let before = requests(&server).lines().count();
    let error = timeout(LONG, controller.run(std::future::pending())).await;
    let error = error.unwrap().unwrap_err().to_string();
    let expected = "informer pods (v1 Pod) failed: a check, a save or a load panicked: a bad tweak";
    assert_eq!(error, expected);
    assert_eq!(requests(&server).lines().count(), before);
}
