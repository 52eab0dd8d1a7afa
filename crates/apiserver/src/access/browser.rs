//! Requests that a page in a browser sends to a port of the same machine, where nobody is asked who they are.
//!
//! Guarantees: a request that names another host than this machine, as after DNS rebinding, or comes from a page of another host, is refused with 403; programs that name no host, or this one, are not.
//!
//! It is what `kubectl proxy` does (`--accept-hosts`), and `Origin` besides: a page may POST without asking.

use std::net::IpAddr;

use http::header::{HOST, HeaderValue, ORIGIN};
use http::request::Parts;
use http::uri::Authority;

use crate::status::ApiError;

/// Why a request is not answered, if it is not.
pub(super) fn refusal(parts: &Parts) -> Option<ApiError> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let named = parts.uri.authority().map(Authority::to_string);
    let hosts = parts.headers.get_all(HOST).iter().map(text);
    if let Some(host) = named.into_iter().chain(hosts).find(|host| !is_own(host)) {
        return Some(refused("Host", &host));
    }
    let mut origins = parts.headers.get_all(ORIGIN).iter().map(text);
    // Without a scheme it is `null`: a page of nowhere.
    let is_own_page = |origin: &String| {
        origin
            .split_once("://")
            .is_some_and(|(_, host)| is_own(host))
    };
    let origin = origins.find(|origin| !is_own_page(origin))?;
    Some(refused("Origin", &origin))
}

/// Whether a host, perhaps with a port, is this machine by a name that nobody else can have.
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
        "{header} {value:?} is not this machine: a server without tokens answers programs on it, and no page of another host; ask by the name localhost, or start it with tokens, TLS or allow_remote"
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
    fn a_host_that_somebody_else_can_have_is_refused() {
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
        assert!(!is_refused("/", &[]), "a program that names none");
        assert!(is_refused("http://evil.com/api", &[("host", "localhost")]));
        assert!(is_refused(
            "/",
            &[("host", "localhost"), ("host", "evil.com")]
        ));
    }

    #[test]
    fn a_page_of_another_host_is_refused() {
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
