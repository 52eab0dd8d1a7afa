//! The indexes of an indexed Job's pods, as `status.completedIndexes` lists them: `0,2-4`.

use std::{collections::BTreeSet, fmt::Write as _};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube_core::ResourceExt;

use super::INDEX;

pub(super) fn is_indexed(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    spec.and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed")
}

/// Returns the index of a pod, or `None` if it has none below `completions`.
pub(super) fn index_of(pod: &Pod, completions: i32) -> Option<i32> {
    let index = pod.annotations().get(INDEX)?.parse().ok()?;
    Some(index).filter(|index| (0..completions).contains(index))
}

/// Reads a list of indexes below `completions`. Parts that are no indexes are skipped, as in Kubernetes.
pub(super) fn parse(text: &str, completions: i32) -> BTreeSet<i32> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            indexes.extend(first.max(0)..=last.min(completions - 1));
        }
    }
    indexes
}

pub(super) fn print(indexes: &BTreeSet<i32>) -> String {
    let mut text = String::new();
    let mut all = indexes.iter().copied().peekable();
    while let Some(first) = all.next() {
        let mut last = first;
        while let Some(next) = all.next_if_eq(&(last + 1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Two indexes are listed, and more are a range.
        let written = match last - first {
            0 => write!(text, "{comma}{first}"),
            1 => write!(text, "{comma}{first},{last}"),
            _ => write!(text, "{comma}{first}-{last}"),
        };
        written.unwrap_or_default();
    }
    text
}

/// Returns the first `number` indexes that neither succeeded nor have an active pod.
pub(super) fn missing(
    succeeded: &BTreeSet<i32>,
    active: &[std::sync::Arc<Pod>],
    (number, completions): (usize, i32),
) -> Vec<i32> {
    let active: BTreeSet<i32> = active
        .iter()
        .filter_map(|pod| index_of(pod, completions))
        .collect();
    let is_missing = |index: &i32| !succeeded.contains(index) && !active.contains(index);
    (0..completions).filter(is_missing).take(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_in_ranges() {
        for text in ["", "0", "0,1", "0-2", "1,3,5-7,9,10"] {
            assert_eq!(print(&parse(text, 100)), text);
        }
        assert_eq!(print(&parse("0,x,7-3,5-200", 8)), "0,5-7");
    }
}
