//! Computes the resource requests of pods and the allocatable capacity of nodes for the scheduler.
//!
//! Guarantees:
//! - A quantity is converted to an integer number of thousandths. A fraction of a thousandth is rounded up,
//!   as in Kubernetes.
//! - An invalid quantity is an error. It is never treated as zero.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::api::resource::Quantity,
};

/// CPU, memory and pods: the capacity of a node, or the requests of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// CPU in thousandths of a core.
    cpu: i128,
    /// Memory in thousandths of a byte.
    memory: i128,
    pods: i128,
}

/// What a node lacks for a pod: the first resource in the order of the variants, or that it takes pods at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    Cpu,
    Memory,
    Pods,
    /// The node is cordoned (`spec.unschedulable`).
    Schedulability,
}

/// Error for a text that is not a non-negative Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity(String);

// === impl Room ===

impl Room {
    /// Returns the allocatable resources in the status of a node.
    pub(crate) fn of_node(node: &Node) -> Result<Room, NotAQuantity> {
        let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref());
        let mut room = Room::of_amounts(allocatable)?;
        room.pods = amount(allocatable, "pods")? / 1_000;
        Ok(room)
    }

    /// Returns the sum of the resource requests of a pod's containers, with a pod count of 1.
    pub(crate) fn of_pod(pod: &Pod) -> Result<Room, NotAQuantity> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut room = Room {
            pods: 1,
            ..Room::default()
        };
        for container in containers {
            let resources = container.resources.as_ref();
            let asked = Room::of_amounts(resources.and_then(|r| r.requests.as_ref()))?;
            room.cpu += asked.cpu;
            room.memory += asked.memory;
        }
        Ok(room)
    }

    fn of_amounts(amounts: Option<&BTreeMap<String, Quantity>>) -> Result<Room, NotAQuantity> {
        Ok(Room {
            cpu: amount(amounts, "cpu")?,
            memory: amount(amounts, "memory")?,
            pods: 0,
        })
    }

    /// Subtracts `taken`. Amounts can become negative.
    pub(crate) fn minus(self, taken: Room) -> Room {
        Room {
            cpu: self.cpu - taken.cpu,
            memory: self.memory - taken.memory,
            pods: self.pods - taken.pods,
        }
    }

    /// Returns the first resource of which `self` has less than `asked`, if any.
    pub(crate) fn lacks(self, asked: Room) -> Option<Lack> {
        if asked.cpu > self.cpu {
            Some(Lack::Cpu)
        } else if asked.memory > self.memory {
            Some(Lack::Memory)
        } else if asked.pods > self.pods {
            Some(Lack::Pods)
        } else {
            None
        }
    }

    /// Returns a key that sorts `Room` values by their CPU, then by memory, then by number of pods.
    pub(crate) fn rank(self) -> impl Ord {
        (self.cpu, self.memory, self.pods)
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lack::Cpu => "insufficient cpu",
            Lack::Memory => "insufficient memory",
            Lack::Pods => "insufficient room for pods",
            Lack::Schedulability => "node(s) were unschedulable",
        })
    }
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a quantity; expected a number with an optional unit, such as 100m, 2 or 1.5Gi",
            self.0
        )
    }
}

impl std::error::Error for NotAQuantity {}

fn amount(amounts: Option<&BTreeMap<String, Quantity>>, name: &str) -> Result<i128, NotAQuantity> {
    match amounts.and_then(|amounts| amounts.get(name)) {
        Some(Quantity(text)) => thousandths(text),
        None => Ok(0),
    }
}

/// Parses a quantity and returns its value in thousandths, rounded up.
///
/// # Errors
/// Returns an error if the quantity is invalid, is negative, has more than 20 digits before or after the
/// point, or is too large for the calculation in `i128`.
pub fn thousandths(text: &str) -> Result<i128, NotAQuantity> {
    let refuse = || NotAQuantity(text.to_owned());
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || whole.len() > 20 || fraction.len() > 20 {
        return Err(refuse());
    }
    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| refuse())?;
    let places = u32::try_from(fraction.len()).map_err(|_| refuse())?;
    let (times, per) = scale(suffix).ok_or_else(refuse)?;
    let times = times.checked_mul(1_000).ok_or_else(refuse)?;
    let per = 10_i128
        .checked_pow(places)
        .and_then(|tens| tens.checked_mul(per))
        .ok_or_else(refuse)?;
    let product = digits.checked_mul(times).ok_or_else(refuse)?;
    Ok(product / per + i128::from(product % per != 0))
}

/// Returns the multiplier and the divisor for a quantity's suffix, such as `(1, 1000)` for `m`.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |n: u32| Some((1_i128 << (10 * n), 1));
    let decimal = |n: u32| Some((10_i128.pow(3 * n), 1));
    match suffix {
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "" => Some((1, 1)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let tens = 10_i128.checked_pow(power.unsigned_abs())?;
            Some(if power < 0 { (1, tens) } else { (tens, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_parse_as_in_kubernetes() {
        let rows = [
            ("100m", 100),
            ("2", 2_000),
            ("0.5", 500),
            (".5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("64Mi", 67_108_864_000),
            ("1k", 1_000_000),
            ("1e3", 1_000_000),
            ("1E-3", 1),
            ("1n", 1),
            ("1001u", 2),
            ("0", 0),
        ];
        for (text, expected) in rows {
            assert_eq!(thousandths(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_quantity_is_rejected_and_not_zero() {
        for text in [
            "",
            "m",
            ".",
            "1.2.3",
            "-1",
            "1 Gi",
            "1gi",
            "1e",
            "1e99",
            "0x1",
            "999999999999999999999",
        ] {
            assert!(thousandths(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_pod_fits_until_one_thing_is_lacking() {
        let node = |cpu, memory, pods| Room { cpu, memory, pods };
        let pod = node(100, 10, 1);
        assert_eq!(node(100, 10, 1).lacks(pod), None);
        assert_eq!(node(99, 10, 1).lacks(pod), Some(Lack::Cpu));
        assert_eq!(node(100, 9, 1).lacks(pod), Some(Lack::Memory));
        assert_eq!(node(100, 10, 0).lacks(pod), Some(Lack::Pods));
        assert_eq!(node(100, 10, 1).minus(pod), Room::default());
    }
}
