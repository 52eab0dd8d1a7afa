//! A TCP balancer between clients and kube-apiserver that can disturb the connections.
//!
//! Guarantees: without a disturbance, every byte is forwarded in order. A disturbance affects the connections
//! that are open when the disturbance begins. Only [`Disturbance::Delay`] also affects connections that are
//! opened later. Dropping the [`Proxy`] closes all connections.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
    time::sleep,
};

/// Maximum number of bytes that are forwarded at once.
const CHUNK: usize = 16 * 1024;

/// A disturbance of the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Disturbance {
    /// No disturbance.
    Pass,
    /// The connection is closed.
    Cut,
    /// Every chunk is forwarded after this time.
    Delay(Duration),
    /// Half of the next chunk to the client is forwarded, then the connection is closed.
    Truncate,
    /// Nothing is forwarded until the disturbance ends.
    Stall,
}

/// The addresses of the servers, which all proxies of a run share. Connections use the addresses in turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends(Arc<Mutex<(Vec<SocketAddr>, usize)>>);

impl Backends {
    /// Replaces the addresses. Open connections stay.
    pub(crate) fn set(&self, ports: &[u16]) {
        let address = |port: &u16| SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        self.0.lock().0 = ports.iter().map(address).collect();
    }

    fn next(&self) -> Option<SocketAddr> {
        let mut backends = self.0.lock();
        backends.1 = backends.1.wrapping_add(1);
        let (addresses, turn) = &*backends;
        let index = turn.checked_rem(addresses.len())?;
        addresses.get(index).copied()
    }
}

/// The disturbance in force, and the number of disturbances so far.
#[derive(Clone, Copy, Debug)]
struct Rule {
    number: u64,
    disturbance: Disturbance,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    rule: watch::Sender<Rule>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts to listen on a free port of loopback.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub(crate) async fn start(backends: Backends) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("the proxy can't listen")?;
        let port = listener.local_addr()?.port();
        let (rule, rules) = watch::channel(Rule {
            number: 0,
            disturbance: Disturbance::Pass,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, backends, rules));
        Ok(Self {
            port,
            rule,
            _tasks: tasks,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Begins a disturbance, which replaces the earlier one.
    pub(crate) fn disturb(&self, disturbance: Disturbance) {
        self.rule.send_modify(|rule| {
            rule.number += 1;
            rule.disturbance = disturbance;
        });
    }
}

async fn accept(listener: TcpListener, backends: Backends, rules: watch::Receiver<Rule>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // No file descriptor is free; a later attempt can succeed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        connections.spawn(connect(client, backends.next(), rules.clone()));
    }
}

/// Forwards one connection until either side closes it.
async fn connect(client: TcpStream, server: Option<SocketAddr>, mut rules: watch::Receiver<Rule>) {
    let born = rules.borrow_and_update().number;
    let Some(server) = server else { return };
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    // Delays are those of the rules only.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let rule = Rules { born, rules };
    tokio::select! {
        biased;
        () = rule.clone().cut() => {}
        () = forward(from_client, to_server, rule.clone(), false) => {}
        () = forward(from_server, to_client, rule.clone(), true) => {}
    }
}

/// The rules as they apply to one connection.
#[derive(Clone)]
struct Rules {
    /// Number of disturbances before the connection was opened.
    born: u64,
    rules: watch::Receiver<Rule>,
}

impl Rules {
    fn now(&mut self) -> Disturbance {
        let rule = *self.rules.borrow_and_update();
        match rule.disturbance {
            Disturbance::Delay(_) => rule.disturbance,
            _ if rule.number > self.born => rule.disturbance,
            _ => Disturbance::Pass,
        }
    }

    /// Waits until the connection must be closed.
    async fn cut(mut self) {
        while self.now() != Disturbance::Cut {
            if self.rules.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the disturbance of the next chunk. During a [`Disturbance::Stall`], waits until the stall
    /// ends.
    async fn next(&mut self) -> Disturbance {
        loop {
            let disturbance = self.now();
            if disturbance != Disturbance::Stall || self.rules.changed().await.is_err() {
                return disturbance;
            }
        }
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut rules: Rules,
    truncates: bool,
) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let mut ends = false;
        let mut length = length;
        match rules.next().await {
            Disturbance::Delay(delay) => sleep(delay).await,
            Disturbance::Truncate if truncates => {
                ends = true;
                length /= 2;
            }
            _ => {}
        }
        if to.write_all(&chunk[..length]).await.is_err() || ends {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that sends back the bytes that it receives, and a proxy in front of the server.
    async fn echo() -> (Proxy, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let backends = Backends::default();
        backends.set(&[listener.local_addr().unwrap().port()]);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (Proxy::start(backends).await.unwrap(), tasks)
    }

    async fn say(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
        stream.write_all(text).await.unwrap();
        let mut answer = vec![0; text.len()];
        let mut read = 0;
        while read < answer.len() {
            match stream.read(&mut answer[read..]).await {
                Ok(more @ 1..) => read += more,
                _ => break,
            }
        }
        answer.truncate(read);
        answer
    }

    #[tokio::test]
    async fn a_disturbance_affects_the_connections_that_are_open() {
        let (proxy, _echo) = echo().await;
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()));
        let mut old = connect().await.unwrap();
        assert_eq!(say(&mut old, b"whole").await, b"whole");
        proxy.disturb(Disturbance::Truncate);
        assert_eq!(say(&mut old, b"half").await, b"ha");
        let mut new = connect().await.unwrap();
        assert_eq!(say(&mut new, b"whole").await, b"whole");
        proxy.disturb(Disturbance::Cut);
        assert_eq!(new.read(&mut [0]).await.unwrap_or(0), 0);
    }

    #[tokio::test]
    async fn a_stalled_connection_continues_when_the_stall_ends() {
        let (proxy, _echo) = echo().await;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()))
            .await
            .unwrap();
        assert_eq!(say(&mut stream, b"before").await, b"before");
        proxy.disturb(Disturbance::Stall);
        stream.write_all(b"during").await.unwrap();
        let mut answer = [0; 6];
        let stalled = stream.read_exact(&mut answer);
        let stalled = tokio::time::timeout(Duration::from_millis(50), stalled).await;
        assert!(stalled.is_err());
        proxy.disturb(Disturbance::Pass);
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"during");
    }
}
