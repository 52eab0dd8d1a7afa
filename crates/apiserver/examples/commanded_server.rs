//! Runs an API server as a child process of a test. The test can be written in any language.
//!
//! The test gives the program pipes for standard input and output. The first line of output is the URL of the
//! server. The server accepts fault plans at the path `/faults`, as
//! [`Faults`](kube_informer_apiserver::Faults) documents them.
//!
//! The program responds to each line of standard input with one line of output. The response to the line
//! `requests` is a JSON array of all requests since the previous such line, in order of arrival. The response
//! to any other line is `error: …`. The program ends when its input is closed.
//!
//! The server also supports a custom kind, `widgets` of `example.com/v1`.
//!
//! ```sh
//! cargo run -p kube-informer-apiserver --example commanded_server
//! ```

use std::io::Write as _;

use kube_informer_apiserver::{Kind, LoggedRequest, Scope, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder().fault_endpoint(true).kind(widget).build();
    let listening = server.listen(([127, 0, 0, 1], 0).into()).await?;
    say(&format!("http://{}", listening.local_addr()))?;
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        match command.as_str() {
            "requests" => say(&requests(&server).to_string())?,
            other => say(&format!("error: unknown command {other:?}"))?,
        }
    }
    listening.shutdown().await;
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn requests(server: &Server) -> Value {
    let log = server.requests();
    log.clear();
    log.iter().map(show).collect()
}

fn show(request: &LoggedRequest) -> Value {
    let options = &request.options;
    json!({
        "arrivedSeconds": request.arrived.as_secs_f64(),
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
