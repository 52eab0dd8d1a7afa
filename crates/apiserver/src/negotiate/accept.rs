//! Parses `Accept` headers as Go's packages `goautoneg` and `go-restful` do for kube-apiserver.
//!
//! Guarantees: any header results in a list of clauses in the order of preference; malformed clauses and
//! parameters are ignored.

use http::{HeaderMap, header};

/// Maximum number of clauses that are sorted exactly as in Go.
///
/// The value is `maxInsertion` in Go's `zsortinterface.go`: Go sorts a longer list with another algorithm.
const INSERTION_SORT_MAX: usize = 12;

/// A media type of an `Accept` header, with its quality and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    pub(super) main_type: &'a str,
    pub(super) sub_type: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Returns the value of the first `Accept` header, or an empty text if there is none.
///
/// Like kube-apiserver, the server ignores any further header.
pub(super) fn accept(headers: &HeaderMap) -> String {
    let value = headers.get(header::ACCEPT);
    let value = value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    value.unwrap_or_default()
}

/// Returns whether the `Accept` header is empty or contains one of the media types `produced`.
///
/// Parameters and qualities are ignored, and `*/*` is the only wildcard.
pub(super) fn is_produced(accept: &str, produced: &[&str]) -> bool {
    let mut media_types = accept.split(',').map(|clause| {
        let (media_type, _) = clause.split_once(';').unwrap_or((clause, ""));
        media_type.trim_matches(' ')
    });
    accept.is_empty()
        || media_types.any(|media_type| media_type == "*/*" || produced.contains(&media_type))
}

/// Returns the clauses of the header in the order of preference.
pub(super) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    if clauses.len() <= INSERTION_SORT_MAX {
        // `precedes` is no order, so the result depends on the algorithm.
        for end in 1..clauses.len() {
            let mut at = end;
            while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
                clauses.swap(at, at - 1);
                at -= 1;
            }
        }
    } else {
        clauses.sort_by(|one, other| {
            let wildcards =
                |clause: &Clause<'_>| [clause.main_type, clause.sub_type].map(|it| it == "*");
            let by_quality = other.quality.total_cmp(&one.quality);
            by_quality.then_with(|| wildcards(one).cmp(&wildcards(other)))
        });
    }
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let text = text.trim_matches(' ');
        let (media_type, parameters) = text.split_once(';').unwrap_or((text, ""));
        let (main_type, rest) = media_type.split_once('/').unwrap_or((media_type, ""));
        let main_type = main_type.trim_matches(' ');
        let sub_type = match only_part(rest, '/')? {
            "" if rest.is_empty() && main_type == "*" => "*",
            "" if rest.is_empty() => return None,
            sub_type => sub_type.trim_matches(' '),
        };
        let mut clause = Clause {
            main_type,
            sub_type,
            quality: 1.0,
            parameters: Vec::new(),
        };
        for parameter in parameters.split(';') {
            let (name, rest) = parameter.split_once('=').unwrap_or_default();
            let Some(value) = only_part(rest, '=').filter(|_| !rest.is_empty()) else {
                continue;
            };
            match name.trim_matches(' ') {
                // An invalid quality is 0.
                "q" => clause.quality = value.parse::<f32>().map_or(0.0, f64::from),
                name => clause.parameters.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    /// Returns the result of Go's `acceptSlice.Less` for `self` and `other`.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.main_type != "*" && other.main_type == "*")
            || (self.sub_type != "*" && other.sub_type == "*")
    }

    /// Returns the value of the last parameter `name`, or `None` if there is none.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut parameters = self.parameters.iter().rev();
        let (_, value) = parameters.find(|(known, _)| *known == name)?;
        Some(value)
    }

    pub(super) fn accepts(&self, main_type: &str, sub_type: &str) -> bool {
        match (self.main_type, self.sub_type) {
            ("*", "*") => true,
            (main, "*") => main == main_type,
            (main, sub) => main == main_type && sub == sub_type,
        }
    }
}

/// Returns `text` without a `separator` at the end, or `None` if any text follows the first `separator`.
fn only_part(text: &str, separator: char) -> Option<&str> {
    match text.split_once(separator) {
        None => Some(text),
        Some((part, "")) => Some(part),
        Some(_) => None,
    }
}
