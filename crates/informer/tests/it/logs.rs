//! Tests of the log lines and tracing spans of informers.
//!
//! Also defines [`Logs`], with which other tests capture log lines.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use tracing::{
    Dispatch, Level,
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_subscriber::fmt::{MakeWriter, format::FmtSpan};

/// Captures the log lines of the current thread until dropped.
pub(crate) struct Logs {
    text: Text,
    _guard: DefaultGuard,
    /// A second subscriber, which receives no log lines.
    ///
    /// If only one subscriber exists, the first thread that reaches a log statement determines whether the
    /// statement is enabled for all threads. A thread without a subscriber would then disable the statement
    /// for this test too. With two subscribers, the result does not depend on the thread.
    _second: Dispatch,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Logs {
    pub(crate) fn capture() -> Self {
        Self::capture_with(FmtSpan::NONE)
    }

    /// Captures log lines of level `DEBUG` or more severe, and the span events that `spans` selects.
    fn capture_with(spans: FmtSpan) -> Self {
        Self::capture_at(Level::DEBUG, spans)
    }

    /// Captures all log lines with their targets, and a line for each creation, entry, exit and close of a
    /// span.
    pub(crate) fn capture_everything() -> Self {
        Self::capture_at(Level::TRACE, FmtSpan::FULL)
    }

    fn capture_at(level: Level, spans: FmtSpan) -> Self {
        let second = Dispatch::new(NoSubscriber::default());
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(level == Level::TRACE)
            .with_span_events(spans)
            .without_time()
            .with_ansi(false)
            .with_writer(text.clone())
            .finish();
        Self {
            text,
            _guard: tracing::subscriber::set_default(subscriber),
            _second: second,
        }
    }

    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.text.0.lock())).unwrap()
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Text {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

mod spans {
    use std::time::Duration;

    use expect_test::expect;
    use tokio::time::sleep;

    use super::*;
    use crate::{
        script::{Answer, Script, body, event, hangs, list, pod},
        setting::{self, factory_builder, run},
    };
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use kube_core::{ApiResource, GroupVersionKind};
    use kube_informer::{SharedInformer, transport::Class};
    use kube_informer_apiserver::Server;

    #[tokio::test(start_paused = true)]
    async fn every_line_of_an_informer_is_in_its_span_and_those_of_a_callback_in_its_handlers() {
        let logs = Logs::capture();
        let script = Script::new([
            Answer::Refuse(Class::Forbidden),
            body(list(5, "", &[pod("a", 1)])),
            hangs(event("ADDED", &pod("b", 6))),
        ]);
        let informer = run(SharedInformer::<Pod>::builder(script)
            .name("pods")
            .rng_seed(1));
        let greets = informer
            .pods
            .on_add(|pod, _| tracing::info!(pod = pod.name(), "hello"));
        greets.name("greets").register().unwrap();
        let fails = |_: &Pod| Err::<Vec<String>, _>("no such thing");
        sleep(Duration::from_secs(5)).await;
        informer.pods.try_add_index("thing", fails).await.unwrap();
        informer.stop().await;
        expect![[r#"
            DEBUG informer{name="pods" kind="v1 Pod"}: starting reflector=pods expects=v1 Pod
             WARN informer{name="pods" kind="v1 Pod"}: failed reflector=pods expects=v1 Pod what=objects error=planted failures=1
            DEBUG informer{name="pods" kind="v1 Pod"}: listed reflector=pods expects=v1 Pod revision=5 count=1
             INFO informer{name="pods" kind="v1 Pod"}:handler{name="greets"}: hello pod="a"
             INFO informer{name="pods" kind="v1 Pod"}:handler{name="greets"}: hello pod="b"
             WARN informer{name="pods" kind="v1 Pod"}: not indexed informer=pods error=default/a is not in index thing: no such thing
             WARN informer{name="pods" kind="v1 Pod"}: not indexed informer=pods error=default/b is not in index thing: no such thing
            DEBUG informer{name="pods" kind="v1 Pod"}: stopped reflector=pods expects=v1 Pod
        "#]].assert_eq(&logs.take());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_objects_a_minute_that_an_index_can_not_place_are_logged_and_the_others_counted() {
        let logs = Logs::capture();
        let objects = (0..25).map(|n| setting::pod(&format!("p{n}")));
        let server = Server::builder().seed(objects).build();
        let informer = run(setting::builder(&server));
        let pods = &informer.pods;
        pods.wait_for_sync().await.unwrap();
        let fails = |_: &Pod| Err::<Vec<String>, _>("no such thing");
        pods.try_add_index("thing", fails).await.unwrap();
        let none = |_: &Pod| Ok(None);
        let fails = |_: &Pod, _: &[std::sync::Arc<Pod>]| Err::<Vec<String>, _>("nor this");
        let derived = pods.try_derived_index("other", pods, none, fails).unwrap();
        derived.wait_for_sync().await.unwrap();
        let is_one = |line: &&str| line.contains(": not indexed");
        let first = logs.take();
        assert_eq!(first.lines().filter(is_one).count(), 20, "{first}");
        sleep(Duration::from_secs(90)).await;
        server.create(setting::pod("z")).unwrap();
        informer.caught_up(&server).await;
        let later = logs.take();
        assert_eq!(later.lines().filter(is_one).count(), 2, "{later}");
        let counted = "more were not indexed within a minute";
        let counts: Vec<_> = later
            .lines()
            .filter(|line| line.contains(counted))
            .collect();
        assert_eq!(counts.len(), 2, "{later}");
        assert!(
            counts.iter().all(|line| line.contains("objects=15")),
            "{counts:?}"
        );
        informer.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn no_span_is_made_for_an_event_or_a_request() {
        let logs = Logs::capture_with(FmtSpan::NEW);
        let events: String = (0..100)
            .map(|n| event("ADDED", &pod(&n.to_string(), 6 + n)))
            .collect();
        let script = Script::new([
            body(list(5, "", &[pod("a", 1)])),
            body(events),
            body(event("ADDED", &pod("z", 200))),
        ]);
        let informer = run(SharedInformer::<Pod>::builder(script).name("pods"));
        informer
            .pods
            .on_add(|_, _| ())
            .name("ours")
            .register()
            .unwrap();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(informer.pods.indexer().len(), 102);
        informer.stop().await;
        let logs = logs.take();
        let new: Vec<_> = logs
            .lines()
            .filter(|line| line.ends_with(": new"))
            .collect();
        assert_eq!(new.len(), 2, "{new:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_an_objects_content_is_logged_whatever_is_wrong_with_it() {
        let logs = Logs::capture();
        let secret = |name: &str, data: &str| {
            let meta =
                format!(r#"{{"name":"{name}","namespace":"default","resourceVersion":"3"}}"#);
            format!(r#"{{"metadata":{meta},"data":{data}}}"#)
        };
        let script = Script::new([
            body(list(
                5,
                "",
                &[
                    secret("a", r#"{"password":"aHVzaA=="}"#),
                    secret("b", r#""hush""#),
                ],
            )),
            hangs(event("ADDED", &secret("c", r#"{"password":"hush, no base64"}"#)) + "hush"),
        ]);
        let building = SharedInformer::<Secret>::builder(script).name("secrets");
        let (secrets, controller) = building
            .try_transform(|_| Err("not to be had".to_owned()))
            .build();
        secrets.on_add(|_, _| ()).register().unwrap();
        controller.run(sleep(Duration::from_secs(5))).await.unwrap();
        let logs = logs.take();
        assert!(logs.contains("default/b can't be decoded"), "{logs}");
        assert!(!logs.contains("hush") && !logs.contains("aHVzaA"), "{logs}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_not_served_is_reported_once_until_it_is_listed_again() {
        let logs = Logs::capture();
        let script = Script::new([
            Answer::Refuse(Class::NotFound),
            Answer::Refuse(Class::NotFound),
            Answer::Refuse(Class::Server),
            Answer::Refuse(Class::NotFound),
            body(list(5, "", &[pod("a", 1)])),
            Answer::Refuse(Class::NotFound),
            Answer::Refuse(Class::NotFound),
        ]);
        let informer = run(SharedInformer::<Pod>::builder(script).rng_seed(1));
        sleep(Duration::from_secs(60)).await;
        let status = informer.pods.status().get();
        assert!(status.to_string().contains("planted"), "{status}");
        informer.stop().await;
        let lines = logs.take();
        let lines = lines.lines().filter(|line| line.contains("failures"));
        expect![[r#"
             WARN informer{name="pods" kind="v1 Pod"}: not served reflector=pods expects=v1 Pod what=objects error=planted failures=1 hint="is the CRD installed?"
            DEBUG informer{name="pods" kind="v1 Pod"}: not served reflector=pods expects=v1 Pod what=objects error=planted failures=2
             WARN informer{name="pods" kind="v1 Pod"}: failed reflector=pods expects=v1 Pod what=objects error=planted failures=3
            DEBUG informer{name="pods" kind="v1 Pod"}: not served reflector=pods expects=v1 Pod what=objects error=planted failures=4
             WARN informer{name="pods" kind="v1 Pod"}: not served reflector=pods expects=v1 Pod what=objects error=planted failures=1 hint="is the CRD installed?"
            DEBUG informer{name="pods" kind="v1 Pod"}: not served reflector=pods expects=v1 Pod what=objects error=planted failures=2
        "#]]
        .assert_eq(&lines.flat_map(|line| [line, "\n"]).collect::<String>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_definition_is_one_line_for_an_informer_over_several_namespaces() {
        let logs = Logs::capture();
        let server = Server::builder().build();
        let factory = factory_builder(server.client())
            .namespaces(["shop", "web"])
            .build();
        let widget = GroupVersionKind::gvk("example.com", "v1", "Widget");
        let widgets = factory
            .for_resource(&ApiResource::from_gvk(&widget))
            .unwrap();
        factory.start();
        sleep(Duration::from_secs(600)).await;
        assert!(!widgets.has_synced());
        factory.shutdown().await;
        let lines = logs.take();
        let lines = lines.lines().map(str::trim_start);
        let lines = lines.filter(|line| !line.starts_with("DEBUG"));
        expect![[r#"
            WARN informer{name="widgets in shop, web" kind="example.com/v1 Widget"}: not served reflector=widgets in shop, web expects=example.com/v1 Widget what=widgets in shop error=the server could not find the requested resource failures=1 hint="is the CRD installed?"
        "#]]
        .assert_eq(&lines.flat_map(|line| [line, "\n"]).collect::<String>());
    }
}
