//! Answers every HTTP request with etcd's report that it is healthy.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

const REPORT: &str = r#"{"health":"true","reason":""}"#;

/// Maximum length of a request in bytes.
const REQUEST_MAX: usize = 8 * 1024;

/// Maximum time in which a client must send its request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of connections that are answered at a time.
const CONNECTIONS_MAX: usize = 100;

/// The open ports.
pub(super) struct Health {
    tasks: JoinSet<()>,
}

impl Health {
    /// Listens on all addresses.
    pub(super) async fn listen(addresses: &[SocketAddr]) -> anyhow::Result<Self> {
        let mut tasks = JoinSet::new();
        for address in addresses {
            let listener = TcpListener::bind(address).await;
            let listener = listener.with_context(|| format!("can't listen on {address}"))?;
            tasks.spawn(serve(listener));
        }
        Ok(Self { tasks })
    }

    pub(super) async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn serve(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() == CONNECTIONS_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            biased;
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(async move { drop(timeout(PATIENCE, answer(stream)).await) });
                }
                // Too many open files; others close meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let length = REPORT.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{REPORT}"
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}
