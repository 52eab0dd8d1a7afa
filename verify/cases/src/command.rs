//! Parses the commands of a case: requests, watches, and values that later commands use.

use anyhow::{Context as _, Result, bail, ensure};

use crate::informer_command::InformerCommand;

/// One command of a case.
///
/// The texts of a command may contain variables such as `$ns`. They are replaced before the command is run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Sends a request, and reads the whole response.
    Request(Request),
    /// Sends a request whose response is not part of the case, but must be a success.
    Do(Request),
    /// Creates the object of a manifest in each encoding, and reads it in each encoding. The body is YAML.
    Manifest(Request),
    /// Repeats a request until its response has this status.
    Await { status: u16, request: Request },
    /// Sends a watch request, and reads the headers of the response.
    Watch { stream: String, request: Request },
    /// Reads events from a watch that an earlier command has started.
    Events { stream: String, wanted: Wanted },
    /// Stores a value of the last response body under a name.
    Set { variable: String, pointer: String },
    /// Starts, reads or stops an informer.
    Informer(InformerCommand),
    /// Makes all revisions before the current one too old for lists and new watches.
    ///
    /// Exception: kube-apiserver still accepts these revisions for watches served from its watch cache.
    Compact,
    /// Allows a user to list and watch a resource in the namespace of the case.
    Allow { user: String, resource: String },
    /// Runs the namespace controller and the garbage collector of Kubernetes until the end of the case.
    Controllers,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Events that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// The next events, this many.
    Count(usize),
    /// All events until the server ends the watch.
    UntilEnd,
    /// All events until the marked event, including it. Then the client ends the watch.
    ///
    /// The object of the marked event has the label `marked` with the name of the watch. The bookmarks that a
    /// server sends from time to time are skipped.
    UntilMarked,
}

/// Header that states how many copies of the command's body the request contains.
///
/// With this header, a case can send a body that would be too long for a case file.
const REPEAT: &str = "body-repeat";

/// Header with the request's body in hexadecimal digits. Used for bodies that are not UTF-8.
const HEX: &str = "body-hex";

impl Command {
    /// Returns the method of the request that this command sends.
    pub(crate) fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request)
            | Self::Do(request)
            | Self::Manifest(request)
            | Self::Await { request, .. }
            | Self::Watch { request, .. } => Some(&request.method),
            Self::Events { .. }
            | Self::Set { .. }
            | Self::Informer(_)
            | Self::Compact
            | Self::Allow { .. }
            | Self::Controllers => None,
        }
    }

    /// Parses a command from its lines and its body.
    ///
    /// In a case file, the lines of a command start with `> `. The caller removes this prefix from `lines`.
    ///
    /// # Errors
    /// Returns an error that names the part that is missing or unknown.
    pub(crate) fn parse(lines: &[&str], body: &str) -> Result<Self> {
        let (first, headers) = lines.split_first().context("a command has no lines")?;
        let (word, rest) = first.split_once(' ').unwrap_or((first, ""));
        if let Some(command) = Self::without_request(word, rest, headers)? {
            ensure!(body.is_empty(), "{word} has no body");
            return Ok(command);
        }
        match word {
            "DO" => {
                let (method, target) = rest.split_once(' ').context("DO needs a request")?;
                Ok(Self::Do(Request::parse(method, target, headers, body)?))
            }
            "MANIFEST" => {
                let request = Request::parse("POST", rest, headers, body)?;
                ensure!(headers.is_empty(), "MANIFEST has one line");
                Ok(Self::Manifest(request))
            }
            "AWAIT" => {
                let mut words = rest.splitn(3, ' ');
                let (Some(status), Some(method), Some(target)) =
                    (words.next(), words.next(), words.next())
                else {
                    bail!("AWAIT needs a status and a request");
                };
                Ok(Self::Await {
                    status: status.parse().context("not a status")?,
                    request: Request::parse(method, target, headers, body)?,
                })
            }
            "WATCH" => {
                let (stream, target) = rest
                    .split_once(' ')
                    .context("WATCH needs a name and a target")?;
                Ok(Self::Watch {
                    stream: stream.to_owned(),
                    request: Request::parse("GET", target, headers, body)?,
                })
            }
            "EVENTS" => {
                let (stream, wanted) = rest
                    .split_once(' ')
                    .context("EVENTS needs a name and a number")?;
                ensure!(headers.is_empty() && body.is_empty(), "EVENTS has one line");
                let wanted = match wanted {
                    "until end" => Wanted::UntilEnd,
                    "until marked" => Wanted::UntilMarked,
                    number => Wanted::Count(number.parse().context("not a number of events")?),
                };
                let stream = stream.to_owned();
                Ok(Self::Events { stream, wanted })
            }
            "SET" => {
                let (variable, pointer) = rest
                    .split_once(' ')
                    .context("SET needs a name and a JSON pointer")?;
                ensure!(headers.is_empty() && body.is_empty(), "SET has one line");
                ensure!(pointer.starts_with('/'), "{pointer:?} is no JSON pointer");
                Ok(Self::Set {
                    variable: variable.to_owned(),
                    pointer: pointer.to_owned(),
                })
            }
            method if method.chars().all(|letter| letter.is_ascii_uppercase()) => {
                Ok(Self::Request(Request::parse(method, rest, headers, body)?))
            }
            _ => bail!("{word:?} is no command"),
        }
    }

    /// Parses the command if `word` is `COMPACT`, `ALLOW`, `CONTROLLERS` or the first word of an
    /// [`InformerCommand`]. Returns `None` for any other `word`.
    fn without_request(word: &str, rest: &str, lines: &[&str]) -> Result<Option<Self>> {
        let command = match (word, rest.split_once(' ')) {
            ("COMPACT", None) if rest.is_empty() => Self::Compact,
            ("ALLOW", Some((user, resource))) => Self::Allow {
                user: user.to_owned(),
                resource: resource.to_owned(),
            },
            ("CONTROLLERS", None) if rest.is_empty() => Self::Controllers,
            ("COMPACT" | "ALLOW" | "CONTROLLERS", _) => bail!("{word} has other words"),
            _ => {
                let command = InformerCommand::parse(word, rest, lines)?;
                return Ok(command.map(Self::Informer));
            }
        };
        ensure!(lines.is_empty(), "{word} has one line");
        Ok(Some(command))
    }
}

impl Request {
    fn parse(method: &str, target: &str, lines: &[&str], body: &str) -> Result<Self> {
        ensure!(target.starts_with('/'), "{target:?} is no path");
        let mut request = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        for line in lines {
            let (name, value) = line
                .split_once(": ")
                .with_context(|| format!("{line:?} is no header"))?;
            match name {
                REPEAT => {
                    let times = value.parse().context("not a number of repetitions")?;
                    request.body = body.as_bytes().repeat(times);
                }
                HEX => request.body = of_hex(value)?,
                _ => request.headers.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(request)
    }
}

fn of_hex(digits: &str) -> Result<Vec<u8>> {
    ensure!(digits.len().is_multiple_of(2), "a digit has no pair");
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair)?;
        u8::from_str_radix(pair, 16).with_context(|| format!("{pair:?} is no byte"))
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: &[&str], body: &str) -> Request {
        let Command::Request(request) = Command::parse(lines, body).unwrap() else {
            panic!("not a request: {lines:?}");
        };
        request
    }

    #[test]
    fn a_request_has_headers_and_a_body() {
        let parsed = request(&["PUT /a?b=c", "If-Match: 1: 2"], "{}");
        assert_eq!((&*parsed.method, &*parsed.target), ("PUT", "/a?b=c"));
        assert_eq!(parsed.headers, [("If-Match".into(), "1: 2".into())]);
        assert_eq!(parsed.body, b"{}");
        assert_eq!(request(&["PUT /a", "body-repeat: 3"], "ab").body, b"ababab");
        assert_eq!(request(&["PUT /a", "body-hex: 7bff"], "").body, b"\x7b\xff");
    }

    #[test]
    fn a_request_of_the_preparation_is_marked() {
        let Command::Do(request) = Command::parse(&["DO PUT /a"], "{}").unwrap() else {
            panic!("not marked");
        };
        assert_eq!((&*request.method, &*request.target), ("PUT", "/a"));
        assert!(Command::parse(&["DO /a"], "").is_err());
    }

    #[test]
    fn a_repeated_request_names_the_status_that_ends_it() {
        let parsed = Command::parse(&["AWAIT 404 GET /a"], "").unwrap();
        let Command::Await { status, request } = parsed else {
            panic!("not repeated: {parsed:?}");
        };
        assert_eq!(
            (status, &*request.method, &*request.target),
            (404, "GET", "/a")
        );
    }

    #[test]
    fn commands_of_a_watch_name_it() {
        let events = |line| Command::parse(&[line], "").unwrap();
        let of = |wanted| Command::Events {
            stream: "w".to_owned(),
            wanted,
        };
        assert_eq!(events("EVENTS w 2"), of(Wanted::Count(2)));
        assert_eq!(events("EVENTS w until end"), of(Wanted::UntilEnd));
        assert_eq!(events("EVENTS w until marked"), of(Wanted::UntilMarked));
        let Command::Watch { stream, request } = events("WATCH w /a?watch=1") else {
            panic!("not a watch");
        };
        assert_eq!((&*stream, &*request.target), ("w", "/a?watch=1"));
    }

    #[test]
    fn an_unknown_command_is_an_error() {
        for lines in [
            &["get /a"][..],
            &["GET a"],
            &["GET"],
            &["GET /a", "no header"],
            &["GET /a", "body-hex: 7"],
            &["GET /a", "body-hex: zz"],
            &["EVENTS w some"],
            &["EVENTS w 1", "Accept: x"],
            &["SET rv metadata"],
            &["WATCH /a"],
            &["AWAIT GET /a"],
            &["AWAIT x GET /a"],
            &["COMPACT all"],
            &["ALLOW guest"],
            &["CONTROLLERS namespace-controller"],
            &["STOP"],
        ] {
            let parsed = Command::parse(lines, "");
            assert!(parsed.is_err(), "{lines:?}: {parsed:?}");
        }
    }
}
