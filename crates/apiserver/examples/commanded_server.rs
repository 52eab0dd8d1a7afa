//! A server for tests that are not written in Rust: it fails on command.
//!
//! Start it as a child with pipes for standard input and output.
//! The first line that it prints is its URL; from then on each line of input is one command, answered by one line: `ok`, `error: …`, or JSON.
//! It ends with its input, so it does not outlive its parent, however that ended.
//!
//! Beside the built-in kinds it serves a custom one, `widgets` of `example.com/v1`.
//! `--no-streaming-lists` makes it refuse `sendInitialEvents`, as servers before Kubernetes 1.34 do.
//!
//! | command | effect |
//! | --- | --- |
//! | `cut-watches`, `break-watches` | end open watches, cleanly or with a reset |
//! | `freeze-watches`, `thaw-watches` | silence on open and new watches, and its end |
//! | `expire-history` | forget all events: older revisions are 410 |
//! | `send-bookmarks` | one bookmark on each watch that allows them |
//! | `refuse-connections`, `accept-connections` | close the port, and open it again |
//! | `answer VERB RESOURCE CODE TIMES RETRY_AFTER` | the next requests get that status; with `RETRY_AFTER` 0 no such header |
//! | `answer-too-large VERB RESOURCE` | the next request is told that its revision is in the future |
//! | `clear-answers` | take `answer`s back that were not given yet |
//! | `send-raw TEXT` | that line, as it is, on every open watch |
//! | `requests` | an array of all requests since the last time, in order of arrival |
//!
//! ```sh
//! cargo run -p kube-informer-apiserver --example commanded_server
//! ```

use std::io::Write as _;

use anyhow::{Context as _, bail};
use kube_informer_apiserver::{Kind, LoggedRequest, Match, Scope, Server, Verb};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut streaming_lists = true;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--no-streaming-lists" => streaming_lists = false,
            other => bail!("unknown argument {other:?}"),
        }
    }
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder()
        .watch_list(streaming_lists)
        .kind(widget)
        .build();
    let listening = server.listen(([127, 0, 0, 1], 0).into()).await?;
    say(&format!("http://{}", listening.local_addr()))?;
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        let answer = obey(&server, &command);
        say(&answer.unwrap_or_else(|error| format!("error: {error:#}")))?;
    }
    listening.shutdown().await;
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn obey(server: &Server, command: &str) -> anyhow::Result<String> {
    let faults = server.faults();
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    match word {
        "cut-watches" => faults.cut_watches(),
        "break-watches" => faults.break_watches(),
        "freeze-watches" => faults.freeze_watches(),
        "thaw-watches" => faults.thaw_watches(),
        "expire-history" => faults.expire_history(),
        "send-bookmarks" => faults.send_bookmarks(),
        "refuse-connections" => faults.refuse_connections(true),
        "accept-connections" => faults.refuse_connections(false),
        "clear-answers" => faults.clear_answers(),
        "send-raw" => faults.send_raw_to_watches(format!("{rest}\n")),
        "answer" => plan_answer(server, rest)?,
        "answer-too-large" => {
            let (verb, resource) = rest
                .split_once(' ')
                .context("answer-too-large VERB RESOURCE")?;
            // The status is replaced; 504 is what it will be.
            let answer = faults.answer(requests(verb, resource)?, 504);
            answer.too_large_revision();
        }
        "requests" => {
            let log = server.requests();
            log.clear();
            let requests: Vec<Value> = log.iter().map(show).collect();
            return Ok(Value::from(requests).to_string());
        }
        other => bail!("unknown command {other:?}"),
    }
    Ok("ok".to_owned())
}

fn plan_answer(server: &Server, words: &str) -> anyhow::Result<()> {
    let words: Vec<&str> = words.split(' ').collect();
    let [verb, resource, code, times, retry_after] = words[..] else {
        bail!("answer VERB RESOURCE CODE TIMES RETRY_AFTER");
    };
    let code = code.parse().context("CODE is an HTTP status")?;
    let times = times.parse().context("TIMES is a number")?;
    let seconds = retry_after.parse().context("RETRY_AFTER is in seconds")?;
    let answer = server.faults().answer(requests(verb, resource)?, code);
    if seconds > 0 {
        answer.retry_after(seconds);
    }
    answer.times(times);
    Ok(())
}

fn requests(verb: &str, resource: &str) -> anyhow::Result<Match> {
    let verb = match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" => Verb::Create,
        other => bail!("no answers are planned for {other:?}"),
    };
    Ok(Match::verb(verb, resource))
}

fn show(request: &LoggedRequest) -> Value {
    let options = &request.options;
    json!({
        "verb": request.verb.to_string(),
        "resource": request.resource,
        "status": request.status,
        "resourceVersion": options.resource_version,
        "resourceVersionMatch": options.resource_version_match,
        "limit": options.limit,
        "continue": options.continue_token.is_some(),
        "sendInitialEvents": options.send_initial_events,
        "allowWatchBookmarks": options.allow_watch_bookmarks,
    })
}
