//! A TCP proxy between one informer and the server. A case can cut all connections through the proxy.
//!
//! Guarantees: after [`Proxy::cut`], no byte passes in either direction, and new connections are closed at
//! once, until [`Proxy::restore`].

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    is_open: watch::Sender<bool>,
    _serving: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (is_open, state) = watch::channel(true);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, state));
        Ok(Self {
            address,
            is_open,
            _serving: serving,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn cut(&self) {
        self.is_open.send_replace(false);
    }

    pub(crate) fn restore(&self) {
        self.is_open.send_replace(true);
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, is_open: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            Ok((client, _)) = listener.accept() => {
                let mut is_open = is_open.clone();
                if *is_open.borrow_and_update() {
                    connections.spawn(relay(client, server, is_open));
                }
            }
        }
    }
}

/// Copies bytes in both directions until the connection ends, or until [`Proxy::cut`] is called.
async fn relay(mut client: TcpStream, server: SocketAddr, mut is_open: watch::Receiver<bool>) {
    let relayed = async {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        biased;
        // A connection exists only while the proxy is open, so the next change is a cut.
        _ = is_open.changed() => {}
        _ = relayed => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Returns whether a byte that is sent to the proxy comes back.
    async fn echoes(proxy: &Proxy) -> bool {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        let mut byte = [7];
        stream.write_all(&byte).await.is_ok() && stream.read_exact(&mut byte).await.is_ok()
    }

    #[tokio::test]
    async fn a_cut_closes_open_and_new_connections_until_it_is_restored() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap()).await.unwrap();
        let mut servers = JoinSet::new();
        servers.spawn(async move {
            let mut echoing = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                echoing.spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        assert!(echoes(&proxy).await);
        let mut open = TcpStream::connect(proxy.address()).await.unwrap();
        open.write_all(&[7]).await.unwrap();
        assert_eq!(open.read_u8().await.unwrap(), 7);
        proxy.cut();
        assert!(open.read_u8().await.is_err());
        assert!(!echoes(&proxy).await);
        proxy.restore();
        assert!(echoes(&proxy).await);
    }
}
