//! Sends a watch as a WebSocket, as browsers request it: a message for each event.
//!
//! The handshake and its errors are those of `golang.org/x/net/websocket`, which kube-apiserver uses for watches: it
//! follows after the watch has begun, so that a rejected watch is an HTTP error, and it requires an `Origin`.
//! Messages of the client are read and ignored.
//!
//! A browser lets every web page open a WebSocket to any server, and read what it sends. The origin of a page must
//! therefore be the server's own or this machine, unless the request has a header `Authorization`, which pages can't send.
//!
//! Guarantees:
//! - a message of the client is limited to [`RECEIVED_MAX`] bytes; a longer one ends the connection;
//! - the socket ends with the watch, with the close code 1000, or when the client closes it.

use std::future::poll_fn;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Buf as _, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::uri::Authority;
use http::{Request, Response, StatusCode, Uri, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::body::{Body, BoxError};
use crate::protobuf;
use crate::serve::Watching;

/// Maximum length of a message of the client in bytes; clients have nothing to send.
const RECEIVED_MAX: usize = 64 * 1024;

/// Size of the buffer for received bytes; that of the library is 128 KiB for each socket.
const READ_BUFFER: usize = 4 * 1024;

/// Text that is hashed with the key of a handshake (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const BAD_VERSION: &str = "missing or bad WebSocket Version";

/// A request for a WebSocket.
pub(super) struct Handshake {
    upgrade: OnUpgrade,
    headers: HeaderMap,
}

/// A watch whose client has been told that its connection becomes a WebSocket.
pub(super) struct WebSocket {
    upgrade: OnUpgrade,
    body: Body,
    messages: Messages,
}

/// Divides the bytes of a watch into events.
struct Messages {
    bytes: BytesMut,
    framing: Framing,
}

#[derive(Clone, Copy)]
enum Framing {
    /// Lines of JSON, which are sent as text.
    Lines,
    /// Protobuf with a length of four bytes before each event, which is sent without its length.
    Lengths,
}

impl Handshake {
    /// Returns the handshake that `request` contains.
    pub(super) fn of<B>(request: &mut Request<B>) -> Option<Handshake> {
        let text = |name: HeaderName| request.headers().get(name)?.to_str().ok();
        let mut options = text(CONNECTION)?.split(',').map(str::trim);
        let is_asked = options.any(|option| option.eq_ignore_ascii_case("upgrade"))
            && text(UPGRADE)?.eq_ignore_ascii_case("websocket")
            && request.version() == Version::HTTP_11;
        if !is_asked {
            return None;
        }
        let headers = request.headers().clone();
        let upgrade = hyper::upgrade::on(request);
        Some(Handshake { upgrade, headers })
    }

    /// Answers the handshake if `response` is a watch, and returns the WebSocket that the connection becomes.
    ///
    /// Other responses are sent as they are.
    pub(super) fn answer(self, response: Response<Body>) -> (Response<Body>, Option<WebSocket>) {
        if response.extensions().get::<Watching>().is_none() {
            return (response, None);
        }
        let accepted = match self.accept() {
            Ok(accepted) => accepted,
            Err((code, text)) => {
                let mut refused = Response::new(Body::full(text));
                *refused.status_mut() = code;
                let headers = refused.headers_mut();
                if text == BAD_VERSION {
                    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
                }
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
                return (refused, None);
            }
        };
        let content_type = response.headers().get(CONTENT_TYPE);
        let is_protobuf = content_type.is_some_and(|value| {
            value
                .as_bytes()
                .starts_with(protobuf::CONTENT_TYPE.as_bytes())
        });
        let web_socket = WebSocket {
            upgrade: self.upgrade,
            body: response.into_body(),
            messages: Messages {
                bytes: BytesMut::new(),
                framing: if is_protobuf {
                    Framing::Lengths
                } else {
                    Framing::Lines
                },
            },
        };
        (accepted, Some(web_socket))
    }

    /// Returns the response of an accepted handshake, or the code and the text of a rejected one.
    fn accept(&self) -> Result<Response<Body>, (StatusCode, &'static str)> {
        let header = |name: HeaderName| {
            let value = self.headers.get(name).map(HeaderValue::as_bytes);
            value.unwrap_or_default()
        };
        let key = header(SEC_WEBSOCKET_KEY);
        if key.is_empty() {
            return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
        }
        if header(SEC_WEBSOCKET_VERSION) != b"13" {
            return Err((StatusCode::BAD_REQUEST, BAD_VERSION));
        }
        if !self.has_permitted_origin() {
            return Err((StatusCode::FORBIDDEN, ""));
        }
        let mut hash = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(key);
        hash.update(GUID);
        let hash = BASE64.encode(hash.finish());
        let mut response = Response::new(Body::full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(hash) = HeaderValue::try_from(hash) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, hash);
        }
        match self.headers.get(SEC_WEBSOCKET_PROTOCOL) {
            Some(several) if several.as_bytes().contains(&b',') => {
                return Err((StatusCode::BAD_REQUEST, ""));
            }
            Some(protocol) if !protocol.is_empty() => {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol.clone());
            }
            _ => {}
        }
        Ok(response)
    }

    fn has_permitted_origin(&self) -> bool {
        let text = |name: HeaderName| self.headers.get(name)?.to_str().ok();
        let origin: Option<Uri> = text(ORIGIN).and_then(|origin| origin.parse().ok());
        let Some(origin) = origin.as_ref().and_then(Uri::authority) else {
            return false;
        };
        let address = origin.host().trim_matches(['[', ']']).parse::<IpAddr>();
        let is_this_machine =
            origin.host() == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let host: Option<Authority> = text(HOST).and_then(|host| host.parse().ok());
        is_this_machine
            || host.is_some_and(|host| host.host() == origin.host())
            || self.headers.contains_key(AUTHORIZATION)
    }
}

impl WebSocket {
    /// Sends the events of the watch until the watch ends or the client closes the connection.
    pub(super) async fn run(self) {
        match self.upgrade.await {
            Ok(upgraded) => match send(upgraded, self.body, self.messages).await {
                Ok(()) | Err(Error::ConnectionClosed) => {}
                Err(error) => tracing::debug!(%error, "a WebSocket ended"),
            },
            Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
        }
    }
}

async fn send(upgraded: Upgraded, mut body: Body, mut messages: Messages) -> Result<(), Error> {
    let limits = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(RECEIVED_MAX))
        .max_frame_size(Some(RECEIVED_MAX));
    let io = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
    loop {
        tokio::select! {
            biased;
            received = socket.next() => match received {
                // The answer to a ping is sent with the next flush.
                Some(Ok(_)) => socket.flush().await?,
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            chunk = poll_fn(|cx| body.poll_chunk(cx)) => match chunk {
                Some(Ok(chunk)) => {
                    messages.bytes.extend_from_slice(&chunk);
                    while let Some(message) = messages.next()? {
                        socket.feed(message).await?;
                    }
                    if messages.bytes.is_empty() {
                        // Frees the memory of a large event.
                        messages.bytes = BytesMut::new();
                    }
                    socket.flush().await?;
                }
                Some(Err(error)) => return Err(broken(error)),
                None if messages.bytes.is_empty() => break,
                None => return Err(broken("the watch ended within an event".into())),
            },
        }
    }
    let normal = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    socket.close(Some(normal)).await?;
    Ok(socket.get_mut().shutdown().await?)
}

fn broken(error: BoxError) -> Error {
    Error::Io(std::io::Error::other(error))
}

impl Messages {
    /// Returns the next complete event.
    ///
    /// # Errors
    ///
    /// Returns an error if a line is not UTF-8, which only an injected fault causes.
    fn next(&mut self) -> Result<Option<Message>, Error> {
        match self.framing {
            Framing::Lines => {
                let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
                    return Ok(None);
                };
                let line = self.bytes.split_to(end + 1).freeze();
                let text = line.try_into().map_err(|error| broken(Box::new(error)))?;
                Ok(Some(Message::Text(text)))
            }
            Framing::Lengths => {
                let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else {
                    return Ok(None);
                };
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() < length {
                    return Ok(None);
                }
                self.bytes.advance(4);
                Ok(Some(Message::Binary(self.bytes.split_to(length).freeze())))
            }
        }
    }
}
