//! Tests that a server with tokens rejects every request without a valid token.
//!
//! Also tests that a server without tokens rejects requests from web pages of other hosts.

use std::net::SocketAddr;

use http_body_util::Full;
use kube_informer_apiserver::{Server, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ask::{builder, get, pod, request, send};
use crate::wire::loopback;

const TOKEN: &str = "abcdefgh";

fn guarded() -> Server {
    builder()
        .seed([pod("a")])
        .fault_endpoint(true)
        .token(TOKEN, User::new("jane"))
        .build()
}

/// Returns URL paths of all routes and kinds, also in unusual spellings such as `//faults`.
async fn paths(server: &Server) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/",
        "//",
        "/api",
        "/apis",
        "/version",
        "/version/",
        "/healthz",
        "/livez/ping",
        "/readyz?verbose",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/apps/v1",
        "/faults",
        "//faults",
        "/faults/",
        "/metrics",
        "/logs",
        "/nowhere",
        "/api//v1/pods",
        "//api/v1/pods",
        "/api/v1/pods/",
        "/%61pi/v1/pods",
        "/api%2fv1%2fpods",
        "/api/v1/../v1/pods",
        "/version/../api/v1/pods",
        "/healthz/../api",
        "/api/v1/namespaces/default/pods/a/exec?command=ls",
        "/api/v1/namespaces/default/pods/a/log",
        "/api/v1/proxy/nodes/n",
        "/api/v1/pods?watch=1&access_token=abcdefgh",
        "/apis/nowhere.io/v1/things",
    ]
    .map(str::to_owned)
    .into();
    let known = server.with_token(TOKEN);
    let mut versions = vec!["/api/v1".to_owned()];
    for group in get(&known, "/apis").await.json["groups"]
        .as_array()
        .unwrap()
    {
        for version in group["versions"].as_array().unwrap() {
            let version = version["groupVersion"].as_str().unwrap();
            versions.push(format!("/apis/{version}"));
        }
    }
    for version in versions {
        let resources = get(&known, &version).await.json["resources"].clone();
        for resource in resources.as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let (plural, below) = name.split_once('/').unwrap_or((name, ""));
            let namespace = if resource["namespaced"] == true {
                "/namespaces/default"
            } else {
                ""
            };
            paths.push(format!("{version}{namespace}/{plural}"));
            paths.push(format!("{version}{namespace}/{plural}/a/{below}"));
        }
        paths.push(version);
    }
    paths
}

#[tokio::test(start_paused = true)]
async fn every_path_and_method_requires_a_token() {
    let server = guarded();
    let paths = paths(&server).await;
    assert!(paths.len() > 200, "{}", paths.len());
    let before = server.revision();
    for path in &paths {
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
        ] {
            let request = request(method, path)
                .header("upgrade", "websocket")
                .header("connection", "upgrade")
                .header("x-remote-user", "jane")
                .header("impersonate-user", "jane");
            let reply = send(&server, request.body(Full::from("list *: 500")).unwrap()).await;
            assert_eq!(
                reply.refusal(),
                "401 Unauthorized: Unauthorized",
                "{method} {path}"
            );
        }
    }
    assert_eq!(server.revision(), before);
    assert_eq!(server.faults().plan(), "seed 1\n");
    // With a token, the server serves many of the same paths.
    let known = server.with_token(TOKEN);
    let mut found = 0;
    for path in paths.iter().filter(|path| !path.contains("watch")) {
        found += usize::from(get(&known, path).await.code == 200);
    }
    assert!(found > 80, "{found}");
}

#[tokio::test(start_paused = true)]
async fn only_the_exact_token_is_accepted() {
    let server = guarded();
    let known = format!("Bearer {TOKEN}");
    let rows: [(&[&str], u16); 15] = [
        (&[known.as_str()], 200),
        // As in Go, the scheme is case-insensitive, and only the first of several headers applies.
        (&["bearer abcdefgh"], 200),
        (&[known.as_str(), "Bearer wrong"], 200),
        (&["Bearer wrong", known.as_str()], 401),
        (&["Basic YWJjZGVmZ2g6", known.as_str()], 401),
        (&[""], 401),
        (&["Bearer"], 401),
        (&["Bearer "], 401),
        (&["Bearer abcdefg"], 401),
        (&["Bearer abcdefghi"], 401),
        (&["Bearer ABCDEFGH"], 401),
        (&["Bearerabcdefgh"], 401),
        (&["abcdefgh"], 401),
        (&["Bearer wrong, Bearer abcdefgh"], 401),
        (&["Bearer \"abcdefgh\""], 401),
    ];
    for (values, code) in rows {
        let mut request = request("GET", "/version");
        for value in values {
            request = request.header("authorization", *value);
        }
        let reply = send(&server, request.body(Full::default()).unwrap()).await;
        assert_eq!(reply.code, code, "{values:?}");
    }
}

/// The headers of each raw request, with the final empty line.
const END: &str = "Host: localhost\r\nConnection: close\r\n\r\n";

async fn first_line(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_form_of_a_request_line_requires_a_token() {
    let listening = guarded().listen(loopback()).await.unwrap();
    let address = listening.local_addr();
    for line in [
        "GET http://localhost/api/v1/pods HTTP/1.1",
        "GET /api/v1/pods HTTP/1.0",
        "GET http://user:pass@localhost/api HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT localhost:443 HTTP/1.1",
        "TRACE /version HTTP/1.1",
        "GET /api/v1/pods?watch=1 HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x",
        "GET /version HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
        "GET /version HTTP/1.1\r\nAuthorization: Bearer abcdefg",
    ] {
        let status = first_line(address, &format!("{line}\r\n{END}")).await;
        assert!(status.contains(" 401 "), "{line}: {status}");
    }
    // A malformed request is rejected as malformed, even without a token.
    for line in [
        "GET /api v1/pods HTTP/1.1",
        "GET /api/v1/pods HTTP/9.9",
        "GET\t/api HTTP/1.1",
    ] {
        let status = first_line(address, &format!("{line}\r\n{END}")).await;
        assert!(
            status.contains(" 400 ") || status.is_empty(),
            "{line}: {status}"
        );
    }
    listening.shutdown().await;
}

// === Pages in a browser ===

#[tokio::test]
async fn a_web_page_of_another_host_is_rejected_by_a_port_without_tokens() {
    let open = || builder().seed([pod("a")]).fault_endpoint(true);
    let ask = "GET /api/v1/pods HTTP/1.1\r\nConnection: close\r\n";
    let post = "POST /faults HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1\r\n";
    let rebound = format!("{ask}Host: evil.com:8001\r\n\r\n");
    let posted = format!("{post}Origin: https://evil.com\r\nContent-Length: 0\r\n\r\n");
    let own = format!("{ask}Host: localhost:8001\r\nOrigin: http://127.0.0.1:3000\r\n\r\n");
    let servers = [
        (open().build(), [403, 403, 200]),
        (open().allow_remote(true).build(), [200, 200, 200]),
        // A client with a token can't be a web page, and may use any host name.
        (
            open().token(TOKEN, User::new("jane")).build(),
            [401, 401, 401],
        ),
    ];
    for (server, codes) in servers {
        let listening = server.listen(loopback()).await.unwrap();
        for (request, code) in [&rebound, &posted, &own].into_iter().zip(codes) {
            let status = first_line(listening.local_addr(), request).await;
            assert!(status.contains(&format!(" {code} ")), "{request}: {status}");
        }
        listening.shutdown().await;
    }
}
