//! Rejects requests from web pages of other hosts to a loopback port that requires no authentication.
//!
//! Guarantees:
//! - A request whose `Host` header or URL names a host other than `localhost` or a loopback address receives
//!   403. This prevents DNS rebinding.
//! - A request whose `Origin` header names such a host, or is `null`, receives 403. Browsers send `null` for
//!   pages without an origin.
//! - Every other request is accepted, including a request without a `Host` header.

use std::net::IpAddr;

use http::header::{HOST, HeaderValue, ORIGIN};
use http::request::Parts;
use http::uri::Authority;

use crate::status::ApiError;

/// Returns a 403 error if the request is from another host's web page.
pub(super) fn refusal(parts: &Parts) -> Option<ApiError> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let named = parts.uri.authority().map(Authority::to_string);
    let hosts = parts.headers.get_all(HOST).iter().map(text);
    if let Some(host) = named.into_iter().chain(hosts).find(|host| !is_own(host)) {
        return Some(refused("Host", &host));
    }
    let mut origins = parts.headers.get_all(ORIGIN).iter().map(text);
    // Only the origin `null` has no scheme. Browsers send it for pages without an origin.
    let is_own_page = |origin: &String| {
        origin
            .split_once("://")
            .is_some_and(|(_, host)| is_own(host))
    };
    let origin = origins.find(|origin| !is_own_page(origin))?;
    Some(refused("Origin", &origin))
}

/// Returns whether `host`, with or without a port, is `localhost`, a loopback address or empty.
fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return host.is_empty();
    };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
}

fn refused(header: &str, value: &str) -> ApiError {
    let message = format!(
        "{header} {value:?} is not a name of this machine: a server without tokens rejects requests of web pages from other hosts; use the name localhost, or start the server with tokens, TLS or allow_remote"
    );
    ApiError::new(403, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn is_refused(uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        refusal(&parts).is_some_and(|error| error.code() == 403)
    }

    #[test]
    fn a_host_that_can_belong_to_another_machine_is_rejected() {
        for host in [
            "localhost",
            "LOCALHOST:8001",
            "127.0.0.1:8001",
            "127.0.0.2",
            "[::1]:8001",
            "",
        ] {
            assert!(!is_refused("/", &[("host", host)]), "{host}");
        }
        for host in [
            "evil.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com:8001",
            "10.0.0.1",
            "a b",
            "@127.0.0.1@x",
        ] {
            assert!(is_refused("/", &[("host", host)]), "{host}");
        }
        assert!(!is_refused("/", &[]), "a program that sends no host");
        assert!(is_refused("http://evil.com/api", &[("host", "localhost")]));
        assert!(is_refused(
            "/",
            &[("host", "localhost"), ("host", "evil.com")]
        ));
    }

    #[test]
    fn a_page_from_another_host_is_rejected() {
        for (origin, refused) in [
            ("http://localhost:3000", false),
            ("https://127.0.0.1", false),
            ("https://evil.com", true),
            ("http://localhost.evil.com", true),
            ("null", true),
        ] {
            let headers = [("host", "localhost"), ("origin", origin)];
            assert_eq!(is_refused("/", &headers), refused, "{origin}");
        }
    }
}
