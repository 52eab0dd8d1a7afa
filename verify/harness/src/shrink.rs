//! Shortens a failing input: removes the elements that are not needed to reproduce the failure.

use std::ops::Range;

/// Removes as many elements as possible from an input, such that the input still fails.
///
/// `length` is the number of elements. Each attempt calls `without` with a range of element indexes. If the
/// input still fails without these elements, `without` must remove them, and return the number of remaining
/// elements. Otherwise, `without` must leave the input unchanged, and return `None`.
///
/// # Errors
/// Returns the first error of `without`, which ends the search.
pub fn leave_out<E>(
    mut length: usize,
    mut without: impl FnMut(Range<usize>) -> Result<Option<usize>, E>,
) -> Result<(), E> {
    let mut size = length.div_ceil(2);
    while size > 0 {
        let (mut at, mut is_shorter) = (0, false);
        while at < length {
            match without(at..(at + size).min(length))? {
                Some(left) => (length, is_shorter) = (left, true),
                None => at += size,
            }
        }
        if !is_shorter || size > 1 {
            size /= 2;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn shortest(mut elements: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let Ok(()) = leave_out(elements.len(), |range| {
            let mut shorter = elements.clone();
            shorter.drain(range);
            let still = fails(&shorter);
            if still {
                elements = shorter;
            }
            Ok::<_, Infallible>(still.then_some(elements.len()))
        });
        elements
    }

    #[test]
    fn only_elements_that_the_failure_needs_are_left() {
        let needs = |elements: &[u8]| elements.contains(&3) && elements.contains(&17);
        assert_eq!(shortest((0..20).collect(), needs), [3, 17]);
    }

    #[test]
    fn a_failure_without_elements_becomes_empty() {
        assert_eq!(shortest(vec![7; 100], |_| true), []);
    }

    #[test]
    fn an_error_ends_the_search() {
        let mut tries = 0;
        let ended = leave_out(10, |_| {
            tries += 1;
            Err("the program has ended")
        });
        assert_eq!((ended, tries), (Err("the program has ended"), 1));
    }
}
