//! Sends commands to the benchmark's server of generated objects, for example to change objects.
//!
//! The benchmark calls this server the neutral source. A real API server accepts no such commands. For a real
//! server, this module only prints lines to standard output. The parent process reads these lines, and
//! changes the objects after the line `ready`.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::flags::Server;

/// The server from which the measured program lists and watches objects.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A server of generated objects, which accepts commands.
    Neutral(Neutral),
    /// A real API server, which accepts no commands; the parent process changes its objects.
    Real,
}

impl Source {
    pub(crate) fn new(server: Server<'_>) -> Result<Self> {
        match server {
            Server::Neutral(address) => Neutral::new(address).map(Self::Neutral),
            Server::Real(_) => Ok(Self::Real),
        }
    }

    /// Prints `synced` to standard output if the server is a real API server.
    pub(crate) fn synced(&self) -> Result<()> {
        match self {
            Self::Neutral(_) => Ok(()),
            Self::Real => print("synced"),
        }
    }

    /// Causes `events` changes of objects, at `rate` changes per second. If `rate` is 0, there is no limit.
    ///
    /// For the benchmark's own server, returns after the last change. For a real API server, only prints
    /// `ready`. The parent process then changes the objects.
    pub(crate) async fn emit(&self, events: u64, rate: u64) -> Result<()> {
        match self {
            Self::Neutral(source) => source.emit(events, rate).await,
            Self::Real => print("ready"),
        }
    }

    /// Returns the client that sends commands to the server of generated objects.
    ///
    /// # Errors
    /// Returns an error if the measured program watches a real API server.
    pub(crate) fn neutral(&self) -> Result<&Neutral> {
        match self {
            Self::Neutral(source) => Ok(source),
            Self::Real => {
                bail!(
                    "--relist needs the neutral source: a real server can't be made to expire a revision"
                )
            }
        }
    }
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output is closed")
}

/// A client that sends commands to the benchmark's server of generated objects.
#[derive(Clone, Debug)]
pub(crate) struct Neutral {
    authority: String,
}

impl Neutral {
    /// Creates a client for the benchmark's server of generated objects at the address `server`.
    ///
    /// # Errors
    /// Returns an error if the address does not start with `http://`.
    pub(crate) fn new(server: &str) -> Result<Self> {
        let authority = server
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'));
        let authority =
            authority.with_context(|| format!("{server} does not begin with http://"))?;
        let authority = authority.to_owned();
        Ok(Self { authority })
    }

    /// Makes the server change objects `events` times, at `rate` changes per second. If `rate` is 0, the
    /// server makes the changes as fast as possible.
    ///
    /// Returns when the server has made the last change.
    pub(crate) async fn emit(&self, events: u64, rate: u64) -> Result<()> {
        self.post(&format!("/emit?n={events}&rate={rate}")).await
    }

    /// Expires all revisions up to the current one, and ends all watches.
    pub(crate) async fn expire(&self) -> Result<()> {
        self.post("/expire").await?;
        self.post("/cut").await
    }

    /// Returns the number of watches that the server has accepted since it started.
    pub(crate) async fn watches(&self) -> Result<u64> {
        let answer = self.ask("GET", "/stats").await?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let stats: serde_json::Value = serde_json::from_str(body).context("of /stats")?;
        let watches = stats["watches"].as_u64();
        watches.with_context(|| format!("/stats has no watches: {body}"))
    }

    async fn post(&self, path: &str) -> Result<()> {
        self.ask("POST", path).await.map(drop)
    }

    /// Sends a request, and returns the response as text, including the status line and the headers.
    ///
    /// # Errors
    /// Returns an error if the connection fails or the status is not 2xx.
    async fn ask(&self, method: &str, path: &str) -> Result<String> {
        let Self { authority } = self;
        let what = || format!("{method} http://{authority}{path}");
        let mut stream = TcpStream::connect(authority).await.with_context(what)?;
        // HTTP/1.0, so that the response is not chunked and ends with the connection.
        let request =
            format!("{method} {path} HTTP/1.0\r\nhost: {authority}\r\ncontent-length: 0\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .with_context(what)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.with_context(what)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.lines().next().unwrap_or_default();
        let code = status.split(' ').nth(1).unwrap_or_default();
        ensure!(code.starts_with('2'), "{}: {status}", what());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Returns a client, and a future that responds to one request with `answer` and returns that request.
    async fn answering(answer: &'static str) -> (Neutral, impl Future<Output = String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let source = Neutral::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let asked = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1_000];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        };
        (source, asked)
    }

    #[tokio::test]
    async fn a_request_for_events_has_their_number_and_rate() {
        let (source, asked) = answering("HTTP/1.0 200 OK\r\n\r\n").await;
        let (done, request) = tokio::join!(source.emit(5, 7), asked);
        done.unwrap();
        assert!(request.starts_with("POST /emit?n=5&rate=7 HTTP/1.0\r\n"));
    }

    #[tokio::test]
    async fn a_rejected_command_is_an_error() {
        let (source, asked) = answering("HTTP/1.0 404 Not Found\r\n\r\n").await;
        let (done, _) = tokio::join!(source.expire(), asked);
        let error = done.unwrap_err().to_string();
        assert!(
            error.ends_with("/expire: HTTP/1.0 404 Not Found"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn the_number_of_watches_is_read_from_the_stats() {
        let answer = "HTTP/1.1 200 OK\r\na: b\r\n\r\n{\"lists\":1,\"watches\":7}";
        let (source, asked) = answering(answer).await;
        let (watches, _) = tokio::join!(source.watches(), asked);
        assert_eq!(watches.unwrap(), 7);
    }

    #[test]
    fn an_address_of_another_protocol_is_rejected() {
        assert!(Neutral::new("https://127.0.0.1:1").is_err());
    }
}
