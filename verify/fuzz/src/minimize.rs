//! Shortens an input for which a fuzz target fails.

use std::convert::Infallible;

use harness::shrink::leave_out;

/// Maximum number of changed inputs that are tried for one input.
const TRIES: usize = 4_000;

/// Returns the shortest failing input found, with irrelevant bytes replaced by `a`.
pub(crate) fn minimize(input: Vec<u8>, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input;
    let mut tries = 0;
    let Ok(()) = leave_out(best.len(), |range| {
        tries += 1;
        let mut shorter = best.clone();
        shorter.drain(range);
        let still = tries <= TRIES && fails(&shorter);
        if still {
            best = shorter;
        }
        Ok::<_, Infallible>(still.then_some(best.len()))
    });
    for at in 0..best.len() {
        let mut plainer = best.clone();
        plainer[at] = b'a';
        tries += 1;
        if tries < TRIES && fails(&plainer) {
            best = plainer;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_the_failure_needs_are_left() {
        let input = b"0123456789abc<xyz>".to_vec();
        let fails = |input: &[u8]| {
            let opened = input.iter().position(|byte| *byte == b'<');
            let closed = input.iter().position(|byte| *byte == b'>');
            opened
                .zip(closed)
                .is_some_and(|(opened, closed)| opened + 1 < closed)
        };
        assert_eq!(minimize(input, fails), b"<a>");
    }

    #[test]
    fn an_input_whose_failure_needs_no_byte_becomes_empty() {
        assert_eq!(minimize(vec![7; 100], |_| true), b"");
    }
}
