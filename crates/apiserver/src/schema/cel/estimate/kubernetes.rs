//! The costs of the functions for which Kubernetes has its own estimates.
//!
//! The numbers are those of `cost.go` in Kubernetes' library.

use super::super::cel_type::Type;
use super::super::node::{Kind, Literal};
use super::call::{Argument, Arguments, Estimate, PATTERN_LETTER, known, of_pattern, to_f64};
use super::{Estimator, LETTER, LIST, ONE, Range};

/// Size of the regular expression of a named format.
const FORMAT_PATTERN: f64 = 128.0;

/// Maximum size of a named format.
const FORMAT_MAX: u64 = 64;

/// The cost of an access check.
const ACCESS_CHECK: u64 = 350_000;

impl<'e> Estimator<'e> {
    /// The functions for which Kubernetes has its own estimates.
    pub(super) fn of_kubernetes(
        &self,
        function: &str,
        overload: &str,
        arguments: &Arguments<'_>,
    ) -> Option<Estimate> {
        let Arguments { target, others, .. } = *arguments;
        let first = others.first().map(|first| self.declared(*first));
        let of_text = |size: Range| Estimate::of(size.scale(LETTER));
        match function {
            "check" => Some(Estimate::of(Range::fixed(ACCESS_CHECK))),
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => Some(Estimate::of(ONE)),
            "fieldSelector" | "labelSelector" => first.map(of_selector),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                target.map(|target| self.of_search(target))
            }
            "url" => first.map(|size| Estimate::sized(size.scale(LETTER), size)),
            "ip" if overload == "cidr_ip" => Some(Estimate::of(ONE)),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => first.map(of_text),
            "ip.isCanonical" => first.map(|size| Estimate::of(size.scale(2.0 * LETTER))),
            "containsIP" | "containsCIDR" => first.map(|size| of_containment(overload, size)),
            "validate" => first.map(|size| {
                let cost = size.scale(LETTER);
                Estimate::of(cost.scale(FORMAT_PATTERN * PATTERN_LETTER))
            }),
            "_==_" => self.of_equality(others).map(Estimate::of),
            _ => self.of_texts(function, arguments, first),
        }
    }

    /// The functions that copy a text, or the items of a list.
    fn of_texts(
        &self,
        function: &str,
        arguments: &Arguments<'_>,
        first: Option<Range>,
    ) -> Option<Estimate> {
        let Arguments { target, others, .. } = *arguments;
        match function {
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.declared(target?);
                Some(Estimate::sized(size.scale(LETTER), size))
            }
            "replace" => {
                let [from, to, ..] = others else { return None };
                let size = self.declared(target?);
                let result = replaced(size, self.declared(*from), self.declared(*to));
                Some(Estimate::sized(size.scale(2.0 * LETTER), result))
            }
            "split" => {
                let size = self.declared(target?);
                let max = match others.get(1).map(|limit| self.kind(limit.id)) {
                    Some(Kind::Literal(Literal::Int(limit))) => limit.cast_unsigned(),
                    _ => size.max,
                };
                let result = Range::new(0, max);
                Some(Estimate::sized(size.scale(2.0 * LETTER), result))
            }
            "join" => {
                let size = self.joined(target?, first);
                Some(Estimate::sized(size.scale(LETTER), size))
            }
            "find" | "findAll" => {
                let size = self.declared(target?);
                let cost = of_pattern(size, first?);
                Some(Estimate::sized(cost, Range::new(0, size.max)))
            }
            _ => None,
        }
    }

    /// The cost of comparing each item of a list, or each letter of a text.
    fn of_search(&self, target: Argument) -> Estimate {
        let size = self.declared(target);
        let Some(of) = self.element_type(target) else {
            return Estimate::of(size.scale(LETTER));
        };
        let cost = match of {
            Type::Scalar("string" | "bytes") => {
                ONE.add(self.declared_element(target).scale(LETTER))
            }
            _ => ONE,
        };
        Estimate::of(size.multiply(cost))
    }

    fn joined(&self, target: Argument, separator: Option<Range>) -> Range {
        let count = self.declared(target);
        let items = match self.element_type(target) {
            Some(_) => count.multiply(self.declared_element(target)),
            None => Range::default(),
        };
        let separators = Range {
            min: count.min.saturating_sub(1),
            max: count.max.saturating_sub(1),
        };
        separator.map_or(items, |separator| items.add(separator.multiply(separators)))
    }

    fn element_type(&self, list: Argument) -> Option<&'e Type> {
        match self.of(list.id) {
            Type::List(of) | Type::Map(of, _) | Type::Meta(Some(of)) => Some(of),
            Type::Opaque(_, parameters) => parameters.first(),
            _ => None,
        }
    }

    fn declared_element(&self, list: Argument) -> Range {
        known(self.declared_size(list.path, Some("@items")))
    }

    fn of_equality(&self, arguments: &[Argument]) -> Option<Range> {
        let [one, other] = arguments else { return None };
        let (Type::Opaque(name, _), Type::Opaque(other_name, _)) =
            (self.of(one.id), self.of(other.id))
        else {
            return None;
        };
        if name != other_name {
            return None;
        }
        match *name {
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => Some(ONE),
            "kubernetes.NamedFormat" => Some(Range::new(1, FORMAT_MAX).scale(LETTER)),
            "kubernetes.URL" => {
                // As in Kubernetes, only the size of the second value has an effect.
                let max = other.size.map_or(1, |size| size.max);
                Some(Range::new(1, max).scale(LETTER))
            }
            _ => None,
        }
    }
}

/// The cost of parsing a selector: a requirement has at least two letters, and is a list and a struct.
fn of_selector(size: Range) -> Estimate {
    let requirements = size.scale(0.5).scale(50.0);
    Estimate::of(Range::fixed(LIST).add(size.scale(LETTER)).add(requirements))
}

/// The cost of comparing addresses of 4 to 16 bytes, and of parsing the argument if it is a text.
fn of_containment(overload: &str, argument: Range) -> Estimate {
    let address = Range::new(4, 16);
    let mut cost = address.add(address).scale(LETTER);
    if overload.starts_with("cidr_contains_cidr") {
        cost = cost.add(address.scale(LETTER)).add(ONE);
    }
    if overload.ends_with("_string") {
        cost = cost.add(argument.scale(LETTER));
    }
    Estimate::of(cost)
}

/// The size of a text after a replacement.
fn replaced(text: Range, from: Range, to: Range) -> Range {
    let most = replacements(text.max, from.min, to.max <= from.min);
    let least = replacements(text.min, from.max, from.max <= to.min);
    let count = Range::new(least.0, most.0);
    count.multiply(to).add(Range::new(least.1, most.1))
}

/// Returns how many parts of a text are replaced, and how many of its letters are kept. `keeps` means that the
/// result has its greatest or least size if nothing is replaced.
fn replacements(text: u64, from: u64, keeps: bool) -> (u64, u64) {
    if from == 0 {
        // An empty text is between all letters.
        (text.saturating_add(1), text)
    } else if keeps {
        (0, text)
    } else {
        (divide(text, from), 0)
    }
}

/// Divides, and rounds up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rounding is that of Go"
)]
fn divide(one: u64, other: u64) -> u64 {
    (to_f64(one) / to_f64(other)).ceil() as u64
}
