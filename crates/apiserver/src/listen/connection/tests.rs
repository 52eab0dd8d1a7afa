//! Tests the limits at which the server ends a connection.

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::*;
use crate::listen::connection_stall::STALL_TIMEOUT;

/// Returns the client's end of a connection to a new server, and the serving task.
fn connected() -> (DuplexStream, JoinSet<()>) {
    connected_by(1024 * 1024)
}

/// Connects like [`connected`], with a buffer of `bytes` bytes in each direction.
fn connected_by(bytes: usize) -> (DuplexStream, JoinSet<()>) {
    let (client, io) = tokio::io::duplex(bytes);
    let pods = (0..2_000).map(|nth| {
        let metadata = json!({"name": format!("p{nth}"), "namespace": "default"});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    });
    let server = Server::builder().seed(pods).build();
    (client, serve(server, io))
}

/// Starts the task that serves `io`, the server's end of a connection.
fn serve(server: Server, io: DuplexStream) -> JoinSet<()> {
    let (alive, _ended) = Alive::new();
    let mut tasks = JoinSet::new();
    let settings = Settings {
        server,
        security: Security::Plain,
        own_machine: None,
        alive,
    };
    tasks.spawn(serve_http(io, None, settings));
    tasks
}

/// Returns the bytes of an HTTP/2 connection preface and a GET request for `path`.
fn http2_request(path: &str) -> Vec<u8> {
    let mut head = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    head.extend_from_slice(path.as_bytes());
    head.extend_from_slice(b"\x01\x01a");
    // The connection preface, empty settings, and the request on stream 1.
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(head);
    bytes
}

/// Reads until the server ends the connection, and returns the text and the elapsed seconds.
async fn until_hung_up(client: &mut DuplexStream) -> (String, u64) {
    let began = Instant::now();
    let mut answer = Vec::new();
    let day = Duration::from_secs(24 * 3600);
    let reading = tokio::time::timeout(day, client.read_to_end(&mut answer));
    reading
        .await
        .expect("the server disconnects at some time")
        .unwrap();
    (
        String::from_utf8_lossy(&answer).into_owned(),
        began.elapsed().as_secs(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_completes_a_head_is_disconnected() {
    for start in [
        "",
        "G",
        "PRI",
        "GET /version HTTP/1.1\r\nHost: a\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let (mut client, _tasks) = connected();
        client.write_all(start.as_bytes()).await.unwrap();
        let (_, seconds) = until_hung_up(&mut client).await;
        assert_eq!(seconds, HEADER_TIMEOUT.as_secs(), "{start:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_its_head_byte_by_byte_gets_no_more_time() {
    let (mut client, _tasks) = connected();
    let (mut read, mut write) = tokio::io::split(&mut client);
    let began = Instant::now();
    let dripping = async {
        for byte in b"GET /version HTTP/1.1\r\nX-Filler: "
            .iter()
            .chain(&[b'x'; 1000])
        {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let mut answer = Vec::new();
    let ((), read) = tokio::join!(dripping, read.read_to_end(&mut answer));
    read.unwrap();
    let seconds = began.elapsed().as_secs();
    assert!(seconds <= HEADER_TIMEOUT.as_secs() + 2, "after {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn a_watch_does_not_count_as_a_late_request() {
    let (mut client, _tasks) = connected();
    let watch = "GET /api/v1/nodes?watch=1&timeoutSeconds=7200&allowWatchBookmarks=1 HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(watch.as_bytes()).await.unwrap();
    let (answer, seconds) = until_hung_up(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let bookmarks = answer.matches("BOOKMARK").count();
    assert_eq!(bookmarks, 121, "one a minute, and one before the end");
    assert!(seconds >= 7_200, "ended after {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn a_head_without_an_end_receives_431() {
    let (mut client, _tasks) = connected();
    let head = format!("GET /version HTTP/1.1\r\nX-Filler: {}", "x".repeat(500_000));
    client.write_all(head.as_bytes()).await.unwrap();
    let (answer, seconds) = until_hung_up(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_on_http2_that_answers_no_ping_is_disconnected() {
    for path in ["/version", "/api/v1/pods?watch=1"] {
        let (mut client, _tasks) = connected();
        client.write_all(&http2_request(path)).await.unwrap();
        let (_, seconds) = until_hung_up(&mut client).await;
        let most = (PING_INTERVAL + PING_TIMEOUT).as_secs();
        assert!((most..=most + 1).contains(&seconds), "{path}: {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_on_http2_is_closed_and_one_with_a_watch_is_not() {
    for (path, most) in [
        ("/version", 2 * IDLE_MAX.as_secs()),
        (
            "/api/v1/pods?watch=1&timeoutSeconds=7200&allowWatchBookmarks=1",
            7_200 + 2 * IDLE_MAX.as_secs(),
        ),
    ] {
        let (client, _tasks) = connected();
        let begun = Instant::now();
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client));
        let (mut sender, connection) = handshake.await.unwrap();
        let asking = async {
            let request =
                Request::get(format!("http://a{path}")).body(Empty::<bytes::Bytes>::new());
            let response = sender.send_request(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), 200);
            drop(response.into_body().collect().await.unwrap());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            ended = connection => ended.unwrap(),
            () = asking => {}
        }
        let seconds = begun.elapsed().as_secs();
        let least = most - IDLE_MAX.as_secs();
        assert!((least..=most + 1).contains(&seconds), "{path}: {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_is_disconnected_and_a_slow_one_is_not() {
    let ask = async |pause: Duration| {
        let (mut client, mut tasks) = connected_by(1024);
        let begun = Instant::now();
        let list = b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(list).await.unwrap();
        let mut piece = [0; 512];
        let mut bytes = 0;
        let reading = async {
            loop {
                tokio::time::sleep(pause).await;
                match client.read(&mut piece).await.unwrap() {
                    0 => return bytes,
                    read => bytes += read,
                }
            }
        };
        let bytes = reading.await;
        tasks.join_next().await;
        (bytes, begun.elapsed())
    };
    let (whole, _) = ask(Duration::ZERO).await;
    let (slow, _) = ask(STALL_TIMEOUT * 9 / 10).await;
    assert_eq!(slow, whole);
    let (stopped, took) = ask(STALL_TIMEOUT * 11 / 10).await;
    assert!(stopped < whole, "{stopped} of {whole} bytes");
    assert!(took < 5 * STALL_TIMEOUT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_its_peer_does_not_read_is_reset_and_a_slow_or_quiet_one_is_not() {
    let (client, _tasks) = connected();
    let handshake = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(20_000)
        .handshake(TokioIo::new(client));
    let (mut sender, connection) = handshake.await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut ask = async |path: &str| {
        let request = Request::get(format!("http://a{path}")).body(Empty::<bytes::Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        response.into_body()
    };
    let quiet = ask("/api/v1/nodes?watch=1&timeoutSeconds=10000").await;
    let stopped = ask("/api/v1/pods").await;
    let mut slow = ask("/api/v1/pods").await;
    let whole = ask("/api/v1/pods").await.collect().await.unwrap();
    // Reads each chunk of the list in nine tenths of its time limit.
    let pause_for_byte = STALL_TIMEOUT * 9 / 10 / (65 * 1024);
    let mut bytes = 0;
    while let Some(frame) = slow.frame().await {
        let read = frame.unwrap().into_data().unwrap().len();
        bytes += read;
        tokio::time::sleep(pause_for_byte * u32::try_from(read).unwrap()).await;
    }
    assert_eq!(bytes, whole.to_bytes().len());
    assert!(stopped.collect().await.is_err(), "the body is incomplete");
    quiet
        .collect()
        .await
        .expect("the watch ends at its deadline");
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_last_chunk_is_not_read_is_reset() {
    let map = |name: &str| {
        let metadata = json!({"name": name, "namespace": "default"});
        let data = json!({"x": "y".repeat(50_000)});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    };
    let server = Server::builder().seed([map("a")]).build();
    let (client, io) = tokio::io::duplex(1024 * 1024);
    let _tasks = serve(server.clone(), io);
    let handshake = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1_000)
        .handshake(TokioIo::new(client));
    let (mut sender, connection) = handshake.await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut ask = async |path: &str| {
        let request = Request::get(format!("http://a{path}")).body(Empty::<bytes::Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        response.into_body()
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let watch = format!("{maps}?watch=1&resourceVersion=1&timeoutSeconds=86000");
    let stopped = [
        ask(&format!("{maps}/a")).await,
        ask(maps).await,
        ask(&watch).await,
    ];
    let mut read = ask(&watch).await;
    server.create(map("b")).unwrap();
    let mut event = 0;
    while event < 50_000 {
        event += read
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap()
            .len();
    }
    // Requests that keep the connection from being idle.
    for _ in 0..10 {
        tokio::time::sleep(STALL_TIMEOUT / 9).await;
        drop(ask("/version").await.collect().await.unwrap());
    }
    for body in stopped {
        assert!(body.collect().await.is_err(), "the body is incomplete");
    }
    server.create(map("c")).unwrap();
    assert!(
        read.frame().await.unwrap().is_ok(),
        "a watch that is read waits"
    );
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[tokio::test(start_paused = true)]
async fn floods_of_frames_end_the_connection_at_once() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const CONTINUATION: u8 = 9;
    let head = b"\x82\x86\x04\x08/version\x01\x01a";
    let reset: Vec<u8> = (1..4_000)
        .step_by(2)
        .flat_map(|stream| {
            let ask = frame(HEADERS, 5, stream, head);
            [ask, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        })
        .collect();
    let endless = std::iter::once(frame(HEADERS, 1, 1, head))
        .chain((0..10_000).map(|_| frame(CONTINUATION, 0, 1, b"\x82")))
        .flatten()
        .collect();
    let few = reset[..10 * (9 + head.len() + 9 + 4)].to_vec();
    let one = [frame(HEADERS, 1, 1, head), frame(CONTINUATION, 4, 1, b"")].concat();
    for (flood, is_flood) in [(reset, true), (endless, true), (few, false), (one, false)] {
        let (mut client, _tasks) = connected();
        let start = http2_request("/version");
        let preface = start.len() - (9 + 3 + 1 + 8 + 3);
        client.write_all(&start[..preface]).await.unwrap();
        let written = client.write_all(&flood).await;
        let (_, seconds) = until_hung_up(&mut client).await;
        assert_eq!(seconds < 2, is_flood, "after {seconds} s, {written:?}");
    }
}
