//! Parses the query parameters of a request into options, and validates the options.
//!
//! Guarantees:
//! - a malformed number results in a 400 error, except a malformed `resourceVersion` of a get or a watch,
//!   which results in a 500 error as in Kubernetes;
//! - unsupported values and contradictory options result in Kubernetes' 422 error with one cause per field.
//!
//! The module does not parse selectors.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::Value;

use crate::go_duration::check_duration;
use crate::quote::{Quoted, is_printable};
use crate::status::{ApiError, FieldError};

/// Maximum length of the query parameter `fieldManager` in bytes.
///
/// The value is `FieldManagerMaxLength` in Kubernetes.
const FIELD_MANAGER_MAX: usize = 128;

/// Valid values of the query parameter `fieldValidation`; empty means absent.
const FIELD_VALIDATIONS: [&str; 4] = ["", "Ignore", "Strict", "Warn"];

/// Kubernetes' type for the query options of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOptions {
    Create,
    Update,
    Patch,
    /// `PatchOptions` of a server-side apply.
    Apply,
}

impl WriteOptions {
    fn type_name(self) -> &'static str {
        match self {
            WriteOptions::Create => "CreateOptions",
            WriteOptions::Update => "UpdateOptions",
            WriteOptions::Patch | WriteOptions::Apply => "PatchOptions",
        }
    }
}

/// The decoded query parameters of a request, in the order of the URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

/// The options of a list or watch request, as the client sent them.
///
/// An option is `None` if the parameter is absent or empty. There are two exceptions: an empty
/// `sendInitialEvents` counts as `true`, and an empty number is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Whether the request is a watch.
    pub watch: bool,
    /// `resourceVersion`: the revision that the client requests.
    pub resource_version: Option<String>,
    /// `resourceVersionMatch`: whether the response must have exactly the revision in `resourceVersion`
    /// (`Exact`), or at least this revision (`NotOlderThan`).
    pub resource_version_match: Option<String>,
    /// `limit`: maximum number of objects in one page.
    ///
    /// `None` if the limit is absent, 0 or negative.
    pub limit: Option<u64>,
    /// `continue`: the continue token that the previous page of the list contained.
    pub continue_token: Option<String>,
    /// `timeoutSeconds`: duration in seconds after which the server ends a watch.
    ///
    /// `None` if the duration is absent, 0 or negative.
    pub timeout_seconds: Option<u64>,
    /// `allowWatchBookmarks`: whether the watch may contain bookmark events.
    pub allow_watch_bookmarks: bool,
    /// `sendInitialEvents`: whether the watch starts with events for the current objects.
    ///
    /// `None` if the request does not contain this parameter. An empty value counts as `true`.
    pub send_initial_events: Option<bool>,
    /// `labelSelector`: the label selector, not parsed.
    pub label_selector: Option<String>,
    /// `fieldSelector`: the field selector, not parsed.
    pub field_selector: Option<String>,
}

/// The revision in the `resourceVersion` of a get, list or watch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// No revision: the server must respond with its most recent state.
    Unset,
    /// The revision `0`: the server can respond with any state.
    Any,
    At(u64),
}

// === impl Query ===

impl Query {
    pub(crate) fn parse(query: &str) -> Query {
        let pairs = query.split('&').filter(|pair| is_well_formed(pair));
        let pairs = pairs.flat_map(|pair| form_urlencoded::parse(pair.as_bytes()).into_owned());
        Query {
            pairs: pairs.collect(),
        }
    }

    /// Returns the first value of the parameter `name`, unless the value is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(known, _)| known == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the first value of the parameter `name` as a boolean, or `None` if the parameter is missing.
    ///
    /// As in apimachinery, the values `0` and `false` (in any letter case) are false, and all other values
    /// are true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let (_, value) = self.pairs.iter().find(|(known, _)| known == name)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some((_, text)) = self.pairs.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|error: ParseIntError| {
            let cause = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {cause}"))
        })?;
        Ok(Some(number))
    }

    /// Checks the parameter `timeout`, which the server otherwise ignores.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if the value is not a duration of Go.
    pub(crate) fn check_timeout(&self) -> Result<(), ApiError> {
        let Some(timeout) = self.text("timeout") else {
            return Ok(());
        };
        check_duration(timeout).map_err(|why| {
            ApiError::bad_request(format!(
                "invalid timeout specified in the request URL - {why}"
            ))
        })
    }

    /// Returns a 400 error if the parameter `export` is true.
    pub(crate) fn check_export(&self) -> Result<(), ApiError> {
        if self.flag("export") != Some(true) {
            return Ok(());
        }
        Err(ApiError::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ))
    }

    /// Returns the name under which a client owns fields: `fieldManager`, or the start of its user agent.
    pub(crate) fn manager<'a>(&'a self, user_agent: &'a str) -> &'a str {
        let named = self.text("fieldManager");
        if let Some(name) = named.filter(|name| !name.is_empty()) {
            return name;
        }
        let product = user_agent.split(['/', '\t']).next().unwrap_or_default();
        let mut end = product.len().min(FIELD_MANAGER_MAX);
        while !product.is_char_boundary(end) {
            end -= 1;
        }
        &product[..end]
    }

    /// Validates the query options of a write, and returns whether the write is a dry run.
    ///
    /// # Errors
    ///
    /// Returns a 422 error with one cause per invalid option.
    pub(crate) fn dry_run(&self, options: WriteOptions) -> Result<bool, ApiError> {
        let mut errors = Vec::new();
        let manager = self.text("fieldManager").unwrap_or_default();
        if options == WriteOptions::Patch && self.flag("force").is_some() {
            let why = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden("force", why));
        }
        if options == WriteOptions::Apply && manager.is_empty() {
            errors.push(FieldError::required(
                "fieldManager",
                "is required for apply patch",
            ));
        }
        if manager.len() > FIELD_MANAGER_MAX {
            errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_MAX));
        }
        let letters = manager.char_indices();
        for (at, letter) in letters.filter(|(_, letter)| !is_printable(*letter)) {
            let code = u32::from(letter);
            let why = format!("invalid character U+{code:04X} (at position {at})");
            let value = Quoted(manager).to_string();
            errors.push(FieldError::invalid("fieldManager", value, &why));
        }
        let stages = self.pairs.iter().filter(|(name, _)| name == "dryRun");
        let stages: Vec<&str> = stages.map(|(_, stage)| &**stage).collect();
        if stages.iter().any(|stage| *stage != "All") {
            errors.push(FieldError::unsupported("dryRun", &*stages, &["All"]));
        }
        let validation = self.text("fieldValidation").unwrap_or_default();
        if !FIELD_VALIDATIONS.contains(&validation) {
            errors.push(FieldError::unsupported(
                "fieldValidation",
                validation,
                &FIELD_VALIDATIONS,
            ));
        }
        if errors.is_empty() {
            return Ok(stages.contains(&"All"));
        }
        Err(ApiError::invalid_options(options.type_name(), &errors))
    }

    /// Returns the query parameters as the JSON of a `DeleteOptions` request body.
    pub(crate) fn as_options(&self) -> Value {
        let members = self.pairs.iter().map(|(name, value)| {
            let value = match value.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) if value == "true" || value == "false" => Value::from(value == "true"),
                Err(_) => Value::from(value.as_str()),
            };
            (name.clone(), value)
        });
        Value::Object(members.collect())
    }
}

// === impl ListOptions ===

impl ListOptions {
    /// Parses the options of a list or watch, without checking for contradictions.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if `limit` or `timeoutSeconds` is not an integer.
    pub(crate) fn parse(query: &Query) -> Result<ListOptions, ApiError> {
        let owned = |name: &str| query.text(name).map(str::to_owned);
        let positive = |name: &str| -> Result<Option<u64>, ApiError> {
            let number = query.number(name)?;
            Ok(number
                .and_then(|number| u64::try_from(number).ok())
                .filter(|number| *number > 0))
        };
        Ok(ListOptions {
            watch: query.flag("watch").unwrap_or(false),
            resource_version: owned("resourceVersion"),
            resource_version_match: owned("resourceVersionMatch"),
            limit: positive("limit")?,
            continue_token: owned("continue"),
            timeout_seconds: positive("timeoutSeconds")?,
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            send_initial_events: query.flag("sendInitialEvents"),
            label_selector: owned("labelSelector"),
            field_selector: owned("fieldSelector"),
        })
    }

    /// Parses the `resourceVersion` of a list request.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if the revision is not a decimal number.
    pub(crate) fn revision(&self) -> Result<Revision, ApiError> {
        let malformed = |cause| ApiError::bad_request(format!("invalid resource version: {cause}"));
        self.parse_revision().map_err(malformed)
    }

    /// Parses the `resourceVersion` of a get or watch request.
    ///
    /// # Errors
    ///
    /// Returns a 500 error, as Kubernetes does, if the revision is not a decimal number.
    pub(crate) fn revision_or_fault(&self) -> Result<Revision, ApiError> {
        self.parse_revision()
            .map_err(|cause| ApiError::unexplained(&cause))
    }

    fn parse_revision(&self) -> Result<Revision, String> {
        let Some(text) = self.resource_version.as_deref() else {
            return Ok(Revision::Unset);
        };
        let number: u64 = text.parse().map_err(|_| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let cause = if digits { "value out of range" } else { "invalid syntax" };
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {cause}"
            )
        })?;
        Ok(if number == 0 {
            Revision::Any
        } else {
            Revision::At(number)
        })
    }

    /// Checks that the options of a list do not contradict each other.
    ///
    /// # Errors
    ///
    /// Returns a 422 error with one cause per invalid option.
    pub(crate) fn check_list(&self) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        if let Some(matching) = self.resource_version_match.as_deref() {
            const FIELD: &str = "resourceVersionMatch";
            if self.resource_version.is_none() {
                errors.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if self.continue_token.is_some() {
                errors.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            match matching {
                "Exact" if self.resource_version.as_deref() == Some("0") => {
                    errors.push(FieldError::forbidden(
                        FIELD,
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                    ));
                }
                "Exact" | "NotOlderThan" => {}
                other => errors.push(FieldError::unsupported(
                    FIELD,
                    other,
                    &["Exact", "NotOlderThan", ""],
                )),
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        refuse(&errors)
    }

    /// Checks that the options of a watch do not contradict each other.
    ///
    /// `watch_list` is whether the server supports streaming lists.
    ///
    /// # Errors
    ///
    /// Returns a 422 error with one cause per invalid option.
    pub(crate) fn check_watch(&self, watch_list: bool) -> Result<(), ApiError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        let matching = self.resource_version_match.as_deref();
        if self.send_initial_events.is_some() {
            if matching != Some("NotOlderThan") {
                errors.push(FieldError::forbidden(
                    FIELD,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if !watch_list {
                errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"));
            }
        }
        if let Some(matching) = matching {
            if self.send_initial_events.is_none() {
                errors.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if matching != "NotOlderThan" {
                errors.push(FieldError::unsupported(FIELD, matching, &["NotOlderThan"]));
            }
        }
        // Without a revision the server itself requests a streaming list with this match.
        let defaulted = watch_list
            && matching.is_none()
            && self.send_initial_events.is_none()
            && matches!(self.resource_version.as_deref(), None | Some("0"));
        if self.continue_token.is_some() && (defaulted || matching.is_some()) {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        refuse(&errors)
    }
}

/// Returns whether Go accepts a query parameter. Go drops parameters with a semicolon or an invalid escape.
fn is_well_formed(pair: &str) -> bool {
    let mut parts = pair.split('%').skip(1);
    let is_escape = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    !pair.contains(';') && parts.all(is_escape)
}

fn refuse(errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_options("ListOptions", errors))
}
