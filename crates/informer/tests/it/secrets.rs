//! Tests that no content of a Secret and no credential appears in a log line, an error, an informer's
//! status, a metric or `Debug` output.
//!
//! The tests process invalid Secrets, damaged files of a saved store, and requests with credentials. All of
//! them contain a known text, the planted secret. The tests search the output of the library for this text.
//!
//! The tests do not cover the `message` field of the `Status` object with which a server reports an error.
//! They also do not cover the output of a program's own functions, such as a transform.

use std::{error::Error as StdError, fmt, fs, path::Path, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube_client::{Config, config::AuthInfo};
use kube_informer::{
    Event, EventHandler, InitialList, Object, SharedInformer,
    client::{self, ListWatch, RotatingClient},
    indexer::Indexers,
    limits::Limits,
    reflector::{Delta, Error, Reflector, ReflectorStore, StoreError},
    shared_informer::Builder,
    warm_start::SavedStore,
};
use kube_informer_apiserver::{Server, User};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    logs::Logs,
    script::{Answer, Script, Then, body, error_event, event, list},
    setting::LONG,
};

const PLANTED: &str = "plant3d-s3cret";

/// The base64 encoding of [`PLANTED`].
const ENCODED: &str = "cGxhbnQzZC1zM2NyZXQ=";

/// The text of all output that the test has recorded, such as errors and log lines.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    fn debug(&self, value: &(impl fmt::Debug + ?Sized)) {
        self.note(format!("{value:?}"));
        self.note(format!("{value:#?}"));
    }

    fn error(&self, error: &(dyn StdError + 'static)) {
        let mut causes = Some(error);
        while let Some(cause) = causes {
            self.debug(cause);
            self.note(format!("{cause} {cause:#}"));
            causes = cause.source();
        }
    }

    /// Asserts that at least `at_least` texts were recorded, and that none of them contains [`PLANTED`].
    ///
    /// The search includes the base64 encoding of [`PLANTED`] and the `Debug` output of its bytes.
    fn holds_nothing(&self, at_least: usize) {
        let said = self.0.lock();
        assert!(said.len() >= at_least, "only {said:#?}");
        let as_bytes = format!("{:?}", PLANTED.as_bytes());
        let as_bytes = as_bytes.trim_matches(['[', ']']);
        let lines = format!("{:#?}", PLANTED.as_bytes());
        let lines: Vec<_> = lines.lines().map(str::trim).collect();
        let as_lines = lines[1..lines.len() - 1].join("");
        for text in &*said {
            let in_one: String = text.lines().map(str::trim).collect();
            for form in [PLANTED, ENCODED, as_bytes, &as_lines] {
                assert!(!in_one.contains(form), "{form} is printed: {text}");
            }
        }
    }

    fn hears<K>(&self, builder: Builder<K>) -> Builder<K>
    where
        K: kube_core::Resource + Send + Sync + 'static,
    {
        let said = self.clone();
        builder.on_error(move |error| {
            said.error(error);
            if let Error::Transport(error) = error {
                said.error(&**error);
            }
        })
    }
}

impl EventHandler<Secret> for Said {
    async fn handle(&mut self, event: Event<Secret>) {
        self.debug(&event);
    }
}

impl ReflectorStore<Secret> for Said {
    async fn accept(&mut self, delta: Delta<Secret>) -> Result<(), StoreError> {
        self.debug(&delta);
        Ok(())
    }
}

/// Returns the metadata of a Secret, with [`PLANTED`] in a label and in an annotation.
fn metadata(name: &str) -> String {
    json!({
        "name": name, "namespace": "default", "resourceVersion": "x9", "uid": format!("uid-{name}"),
        "labels": {"app": PLANTED},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": PLANTED},
    })
    .to_string()
}

/// Returns one valid Secret and several invalid Secrets as JSON, all of which contain [`PLANTED`].
fn secrets() -> Vec<String> {
    let quoted = format!("\"{PLANTED}\"");
    let wrong_rests = [
        format!(r#""data":{quoted}"#),
        format!(r#""data":[{quoted}]"#),
        format!(r#""data":{{"password":{quoted}}}"#),
        format!(r#""data":{{"password":[{quoted}]}}"#),
        format!(r#""data":{{"password":{{"deeper":{quoted}}}}}"#),
        format!(r#""data":{{"password":{PLANTED}}}"#),
        format!(r#""data":{{"password":"{ENCODED}"}},"immutable":{quoted}"#),
        format!(r#""data":{{"password":"{ENCODED}"}},"type":[{quoted}]"#),
        format!(r#""data":{{"password":"{ENCODED}"}}"#) + &"]".repeat(3),
    ];
    let good = format!(
        r#"{{"metadata":{},"data":{{"password":"{ENCODED}"}}}}"#,
        metadata("good")
    );
    let wrong = wrong_rests.iter().enumerate();
    let wrong = wrong.map(|(n, rest)| {
        format!(
            "{{\"metadata\":{},{rest}}}",
            metadata(&format!("wrong-{n}"))
        )
    });
    let unreadable = [
        quoted.clone(),
        format!(r#"{{"metadata":{quoted}}}"#),
        format!(r#"{{"metadata":{{"name":[{quoted}]}}}}"#),
        format!(r#"{{"metadata":{{"name":"labels","labels":{quoted}}}}}"#),
        format!(r#"{{"metadata":{{"name":"labels","labels":{{"app":[{quoted}]}}}}}}"#),
        format!(r#"{{"metadata":{{"name":"time","creationTimestamp":{quoted}}}}}"#),
        format!(r#"{{"metadata":{{"name":"owners","ownerReferences":{quoted}}}}}"#),
        format!(
            r#"{{"kind":"Else","apiVersion":"v1","metadata":{},"data":{quoted}}}"#,
            metadata("else")
        ),
    ];
    [good].into_iter().chain(wrong).chain(unreadable).collect()
}

/// Returns responses to list and watch requests, most of which contain [`PLANTED`].
fn answers() -> Vec<Answer> {
    let secrets = secrets();
    let good = || body(list(5, "", &secrets[..1]));
    // Invalid JSON would break the list around it.
    let fits: Vec<_> = secrets
        .iter()
        .filter(|secret| !secret.ends_with("]]]}"))
        .cloned()
        .collect();
    let mut answers = vec![body(list(5, "", &fits))];
    for secret in &secrets {
        for kind in [
            "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "SURPRISE", "ERROR",
        ] {
            answers.push(body(event(kind, secret)));
            answers.push(good());
        }
    }
    let details = format!(
        r#"{{"code":500,"reason":"{PLANTED}","details":{{"name":"{PLANTED}","causes":[{{"message":"{PLANTED}"}}]}}}}"#
    );
    let huge = format!(
        r#"{{"metadata":{},"data":{{"password":"{}"}}}}"#,
        metadata("huge"),
        PLANTED.repeat(1000)
    );
    for text in [
        PLANTED.to_owned(),
        format!("{{{PLANTED}}}"),
        format!("{{\"type\":\"{PLANTED}"),
        error_event(&details),
        event("ADDED", &huge),
    ] {
        answers.push(body(text));
        answers.push(good());
    }
    for text in [
        PLANTED.to_owned(),
        format!("[\"{PLANTED}\"]"),
        format!(r#"{{"items":"{PLANTED}"}}"#),
        format!(r#"{{"items":[{PLANTED}}}"#),
        format!(r#"{{"{PLANTED}":1}}"#),
        format!(r#"{{"metadata":{{"continue":["{PLANTED}"]}},"items":[]}}"#),
        format!(r#"{{"metadata":{{"resourceVersion":"{PLANTED}","items":[]"#),
        list(5, "", std::slice::from_ref(&huge)),
    ] {
        answers.push(body(String::new()));
        answers.push(body(text));
    }
    answers.push(Answer::Body(
        format!("{{\"items\":[{}", secrets[0]),
        Then::Ends,
    ));
    answers
}

fn builder(script: Script) -> Builder<Secret> {
    SharedInformer::builder(script)
        .name("secrets")
        .rng_seed(1)
        .limits(Limits {
            object_bytes: 10_000,
            ..Limits::default()
        })
        .initial_list(InitialList::List)
}

/// Runs the informer until `wait` has returned twice, and records the informer's output in `said`.
async fn live(said: &Said, informer: Builder<Secret>, wait: impl AsyncFn(&SharedInformer<Secret>)) {
    let informer = said.hears(informer);
    let informer = informer
        .indexers(Indexers::new().with_label("app", "app"))
        .unwrap();
    #[cfg(feature = "prometheus")]
    let figures = kube_informer::metrics::Prometheus::new();
    #[cfg(feature = "prometheus")]
    let (informer, figures) = {
        let figures = Arc::new(figures);
        (informer.metrics(figures.clone()), figures)
    };
    said.debug(&informer);
    let (secrets, controller) = informer.build();
    said.debug(&controller);
    secrets.handler(said.clone()).register().unwrap();
    let bursts = |_, _| -> () { panic!("planted") };
    secrets.on_add(bursts).register().unwrap();
    let panics = |secret: &Secret| -> Result<Vec<String>, String> { panic!("{secret:?}") };
    let shown = async {
        wait(&secrets).await;
        secrets.try_add_index("panics", panics).await.unwrap();
        #[cfg(feature = "prometheus")]
        said.note(figures.text());
        said.debug(&secrets.handlers());
        wait(&secrets).await;
    };
    let watched = async {
        let mut status = secrets.status();
        while let Some(status) = status.changed().await {
            said.note(status.to_string());
        }
    };
    tokio::select! {
        biased;
        ended = controller.run(shown) => drop(ended.unwrap()),
        () = watched => {}
    }
    let status = secrets.status().get();
    said.debug(&status);
    said.debug(&secrets);
    said.debug(&secrets.indexer());
    said.debug(&secrets.indexer().snapshot());
    said.debug(&secrets.indexer().list());
    said.debug(&secrets.lister());
    for source in &status.sources {
        let last = source.last_error.as_deref();
        if let Some(error) = last {
            said.error(error);
        }
    }
}

const HOURS: Duration = Duration::from_secs(3 * 3600);

async fn hours(_: &SharedInformer<Secret>) {
    sleep(HOURS).await;
}

/// Waits until a request of the informer has failed.
async fn failed(secrets: &SharedInformer<Secret>) {
    let mut status = secrets.status();
    let failed = status.wait_for(|status| {
        let mut sources = status.sources.iter();
        sources.any(|source| source.last_error.is_some())
    });
    timeout(LONG, failed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_content_of_a_secret_is_printed_for_any_error() {
    let (said, logs) = (Said::default(), Logs::capture_everything());
    let script = Script::new(answers());
    live(&said, builder(script.clone()), hours).await;
    assert_eq!(
        script.unasked(),
        0,
        "a part of the script was not requested"
    );
    let refuses = builder(Script::new(answers())).try_transform(|_| Err("no".to_owned()));
    live(&said, refuses, hours).await;
    let panics = builder(Script::new(answers())).transform(|secret| panic!("{secret:?}"));
    live(&said, panics, hours).await;
    let script = Script::new(answers());
    let reflector = Reflector::builder::<Secret>(script).into_store(said.clone());
    said.debug(&reflector);
    reflector.run(sleep(HOURS)).await;
    let nameless = json!({"data": {"password": ENCODED}, "type": PLANTED});
    let nameless = Object::<Secret>::new(serde_json::from_value(nameless).unwrap());
    said.error(&nameless.unwrap_err());
    let logs = logs.take();
    for said in ["can't be decoded", "not indexed", "a handler panicked"] {
        assert!(logs.contains(said), "{said} is not logged");
    }
    logs.lines().for_each(|line| said.note(line));
    said.holds_nothing(1000);
}

#[tokio::test(start_paused = true)]
async fn no_content_of_a_saved_secret_is_printed_for_any_damage_of_the_file() {
    let (said, logs) = (Said::default(), Logs::capture_everything());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("secrets.jsonl");
    let _ = fs::remove_file(&path);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a", "namespace": "default", "labels": {"app": PLANTED}},
        "data": {"password": ENCODED},
    });
    let server = Server::builder().seed([secret]).build();
    let saved = SavedStore::in_file(&path, "1").allow_secrets();
    said.debug(&saved);
    let warm = || {
        let source = ListWatch::<Secret>::new(server.client());
        let informer = SharedInformer::builder(source).name("secrets").rng_seed(1);
        informer.warm_start(saved.clone())
    };
    let minute = async |_: &SharedInformer<Secret>| sleep(Duration::from_secs(30)).await;
    live(&said, warm(), &minute).await;
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(ENCODED), "saved in plain text, as configured");
    for (sound, damaged) in [
        (ENCODED, PLANTED),
        (r#""object":{"#, r#""object":["#),
        (r#""name":"a""#, r#""name":["plant3d-s3cret"]"#),
        (r#""revision":"#, r#""revision":["plant3d-s3cret"],"#),
        (r#""kind":"v1 Secret""#, r#""kind":5"#),
    ] {
        let changed = text.replacen(sound, damaged, 1);
        assert_ne!(changed, text, "{sound}");
        fs::write(&path, changed).unwrap();
        live(&said, warm(), &minute).await;
    }
    let logs = logs.take();
    assert!(logs.contains("is damaged"), "{logs}");
    // The embedded server may log its own requests and responses.
    let ours = logs
        .lines()
        .filter(|line| !line.contains("kube_informer_apiserver"));
    ours.for_each(|line| said.note(line));
    said.holds_nothing(100);
}

async fn asked(said: &Said, config: Config) {
    match client::connect(config) {
        Ok(client) => {
            let source = ListWatch::<Secret>::new(client);
            said.debug(&source);
            let informer = SharedInformer::builder(source).name("secrets");
            live(said, informer, failed).await;
        }
        Err(error) => {
            // What kube itself prints is not covered; its error as the cause of a library error is.
            let error = Mutex::new(Some(error));
            let client = RotatingClient::new(move || {
                let error = error.lock().take();
                async move { Err::<kube_client::Client, _>(error.expect("the client is created once")) }
            });
            said.debug(&client);
            let informer = SharedInformer::builder(ListWatch::<Secret>::new(client));
            live(said, informer.name("secrets"), failed).await;
        }
    }
}

#[tokio::test]
async fn no_credentials_are_printed_for_any_error() {
    let (said, logs) = (Said::default(), Logs::capture_everything());
    let server = Server::builder()
        .token("another", User::new("somebody"))
        .build();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listening.local_addr();
    let config = |uri: String, auth: Value| {
        let mut config = Config::new(uri.parse().unwrap());
        config.auth_info = serde_json::from_value::<AuthInfo>(auth).unwrap();
        config
    };
    let exec = |script: String| {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", script],
        }})
    };
    let plain = || format!("http://{address}");
    asked(&said, config(plain(), json!({"token": PLANTED}))).await;
    asked(
        &said,
        config(plain(), json!({"username": "me", "password": PLANTED})),
    )
    .await;
    for script in [
        format!("echo {PLANTED}"),
        format!("echo {PLANTED} >&2; exit 1"),
        format!(
            r#"echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{PLANTED}"}}}}'"#
        ),
    ] {
        asked(&said, config(plain(), exec(script))).await;
    }
    let key = json!({"client-certificate-data": ENCODED, "client-key-data": ENCODED});
    asked(&said, config(format!("https://{address}"), key)).await;
    let user_info = format!("http://me:{PLANTED}@127.0.0.1:1");
    asked(&said, config(user_info, json!({}))).await;
    listening.shutdown().await;
    let logs = logs.take();
    assert!(logs.contains("the credential plugin"), "{logs}");
    logs.lines().for_each(|line| said.note(line));
    said.holds_nothing(100);
}
