//! Stores the labels (keys and values) or the field values of one object in a compact list.
//!
//! Guarantees: the list is immutable, and uses two allocations for any number of strings.

/// An immutable list of strings, stored as one string.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Texts {
    text: Box<str>,
    /// Byte positions in `text` at which the strings end, one per string.
    ends: Box<[u32]>,
}

impl Texts {
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start as usize..end as usize])
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<T: IntoIterator<Item = S>>(strings: T) -> Texts {
        let mut text = String::new();
        let mut ends = Vec::new();
        for string in strings {
            text.push_str(string.as_ref());
            let end = u32::try_from(text.len());
            ends.push(end.expect("an object, and so its labels, is smaller than 4 GiB"));
        }
        Texts {
            text: text.into(),
            ends: ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn strings_are_returned_unchanged() {
        let strings = ["a", "", "äöü", "", "d"];
        let texts: Texts = strings.into_iter().collect();
        let read: Vec<_> = (0..texts.len()).filter_map(|at| texts.get(at)).collect();
        assert_eq!((read, texts.get(5)), (strings.to_vec(), None));
        assert_eq!(Texts::default().get(0), None);
    }
}
