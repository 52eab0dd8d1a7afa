//! Checks email addresses as Go's `mail.ParseAddress` does.
//!
//! Differences from the address of RFC 5322:
//! - Characters outside ASCII are allowed. Line breaks are allowed only in comments.
//! - A display name can precede an address in angle brackets, and a group can contain one address.
//! - Comments are allowed at few places: around an address, and in a display name after its first word.
//! - A domain in square brackets must be an IP address.
//! - An encoded word in an unknown character set is an error, unless it is the last word of several in a
//!   display name.
//!
//! The nesting of comments is not limited, because it is only counted.

use std::net::Ipv4Addr;

use super::encoded_word::{Word, classify};
use super::network::is_ipv6;

/// Returns whether `text` is one email address.
pub(super) fn is_email(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    let count = parser.address();
    count == Some(1) && parser.skip_comments().is_some() && parser.rest.is_empty()
}

/// Reads a text from its start. A method that returns `None` found a text that is not an address.
struct Parser<'a> {
    rest: &'a str,
}

enum Item {
    Mailbox,
    /// The name of a group and the colon after it.
    GroupName,
}

impl<'a> Parser<'a> {
    /// Reads an address or a group, and returns the number of addresses.
    fn address(&mut self) -> Option<usize> {
        match self.item()? {
            Item::Mailbox => Some(1),
            Item::GroupName => self.group(),
        }
    }

    /// Reads a group after its name, and returns the number of addresses.
    fn group(&mut self) -> Option<usize> {
        self.skip_spaces();
        let mut count = 0;
        if !self.skip(';') {
            loop {
                let Item::Mailbox = self.item()? else {
                    return None;
                };
                count += 1;
                self.skip_comments()?;
                if self.skip(';') {
                    break;
                }
                self.expect(',')?;
            }
        }
        self.skip_comments()?;
        Some(count)
    }

    fn item(&mut self) -> Option<Item> {
        self.skip_spaces();
        let start = self.rest;
        if self.plain_address().is_some() {
            self.skip_spaces();
            if self.skip('(') {
                let comment = self.comment()?;
                return is_display_name(comment).then_some(Item::Mailbox);
            }
            return Some(Item::Mailbox);
        }
        self.rest = start;
        if !start.starts_with('<') {
            self.display_name()?;
        }
        self.skip_spaces();
        if self.skip(':') {
            return Some(Item::GroupName);
        }
        self.expect('<')?;
        self.plain_address()?;
        self.expect('>')?;
        Some(Item::Mailbox)
    }

    /// Reads an address such as `user@example.com`.
    fn plain_address(&mut self) -> Option<()> {
        self.skip_spaces();
        if self.rest.starts_with('"') {
            let user = self.quoted_string()?;
            if user.is_empty() {
                return None;
            }
        } else {
            self.dot_atom()?;
        }
        self.expect('@')?;
        self.skip_spaces();
        if self.skip('[') {
            let (domain, rest) = self.rest.split_once(']')?;
            self.rest = rest;
            (domain.parse::<Ipv4Addr>().is_ok() || is_ipv6(domain)).then_some(())
        } else {
            self.dot_atom()
        }
    }

    /// Reads atoms with dots between them.
    fn dot_atom(&mut self) -> Option<()> {
        let atom = self.atom_with_dots()?;
        atom.split('.').all(|atom| !atom.is_empty()).then_some(())
    }

    /// Reads atoms and dots in any order.
    fn atom_with_dots(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|next| !is_atom(next) && next != '.');
        let (atom, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// Reads a string in quotes, and returns what is between the quotes.
    ///
    /// Does not read anything if the string is not valid.
    fn quoted_string(&mut self) -> Option<&'a str> {
        let text = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        for (index, next) in text.char_indices() {
            match next {
                '"' if !escaped => {
                    self.rest = &text[index + 1..];
                    return Some(&text[..index]);
                }
                '\\' if !escaped => escaped = true,
                _ if is_visible(next) || matches!(next, ' ' | '\t') => escaped = false,
                _ => return None,
            }
        }
        None
    }

    /// Reads the words of a display name.
    ///
    /// As in Go, the name ends at the first word that is not valid, and an encoded word with an empty text
    /// does not count as a word.
    fn display_name(&mut self) -> Option<()> {
        let mut has_word = false;
        let mut has_encoded = false;
        loop {
            // Go joins encoded words, and counts them as a word only when another word follows.
            if has_word {
                self.skip_comments()?;
            }
            self.skip_spaces();
            if self.rest.is_empty() {
                return Some(());
            }
            let word = if self.rest.starts_with('"') {
                self.quoted_string().map(|_| Word::Plain)
            } else {
                self.atom_with_dots().map(classify)
            };
            match word {
                Some(Word::Plain) => has_word = true,
                Some(Word::Encoded { is_empty }) => has_encoded |= !is_empty,
                Some(Word::UnknownCharset) | None => {
                    return (has_word || has_encoded).then_some(());
                }
            }
        }
    }

    /// Skips spaces and comments.
    fn skip_comments(&mut self) -> Option<()> {
        self.skip_spaces();
        while self.skip('(') {
            self.comment()?;
            self.skip_spaces();
        }
        Some(())
    }

    /// Reads a comment after its opening parenthesis, and returns what precedes the closing one.
    fn comment(&mut self) -> Option<&'a str> {
        let text = self.rest;
        let mut depth = 1;
        let mut escaped = false;
        for (index, next) in text.bytes().enumerate() {
            match next {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &text[index + 1..];
                return Some(&text[..index]);
            }
        }
        None
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip(&mut self, next: char) -> bool {
        self.expect(next).is_some()
    }

    fn expect(&mut self, next: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(next)?;
        Some(())
    }
}

/// Returns whether Go can decode a comment, which it uses as the display name of the address before it.
fn is_display_name(comment: &str) -> bool {
    let mut text = String::with_capacity(comment.len());
    let mut escaped = false;
    for next in comment.chars() {
        escaped = next == '\\' && !escaped;
        if !escaped {
            text.push(next);
        }
    }
    text.split([' ', '\t'])
        .all(|word| classify(word) != Word::UnknownCharset)
}

fn is_atom(character: char) -> bool {
    is_visible(character) && !"()<>[]:;@\\,.\"".contains(character)
}

/// Returns whether a character is printable ASCII except the space, or not ASCII.
fn is_visible(character: char) -> bool {
    character.is_ascii_graphic() || !character.is_ascii()
}
