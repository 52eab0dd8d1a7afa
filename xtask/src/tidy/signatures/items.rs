//! Finds the public signatures in the tokens of a Rust file.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::tidy::rust::Token;

/// Keywords that can be between `pub` and `fn`.
const QUALIFIERS: [&str; 4] = ["async", "const", "unsafe", "extern"];

/// Returns `tokens` without attributes, such as derives and lints.
pub(super) fn without_attributes<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut at, mut kept) = (0, Vec::with_capacity(tokens.len()));
    while at < tokens.len() {
        let open = at + 1 + usize::from(text(tokens, at + 1) == "!");
        if tokens[at].text == "#" && text(tokens, open) == "[" {
            at = closing(tokens, open);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Returns the token ranges of public signatures, and of `From` and `TryFrom` impls of public types.
///
/// A signature starts at a keyword such as `fn` or `use`, or at a field's name.
pub(super) fn public_signatures(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let private = private_types(tokens);
    let mut ranges = Vec::new();
    for at in 0..tokens.len() {
        match tokens[at].text {
            "pub" if text(tokens, at + 1) != "(" => item(tokens, at + 1, &mut ranges),
            "impl" => {
                let header = at..end(tokens, at, &["{"]);
                if is_conversion(&tokens[header.clone()], &private) {
                    ranges.push(header);
                }
            }
            _ => {}
        }
    }
    ranges
}

/// Returns the names that a `use` declaration binds, given the tokens after `use`.
pub(super) fn bound_names<'a>(tree: &[Token<'a>]) -> Vec<&'a str> {
    let last = |at: usize| matches!(text(tree, at + 1), "" | "," | "}");
    let mut names = Vec::new();
    for (at, token) in tree.iter().enumerate().filter(|(at, _)| last(*at)) {
        match token.text {
            "}" | "," | "_" | "*" => {}
            "self" => names.extend((at >= 3).then(|| tree[at - 3].text)),
            name => names.push(name),
        }
    }
    names
}

/// Adds the signature of a public item to `ranges`; `start` is the index after `pub`.
fn item(tokens: &[Token<'_>], start: usize, ranges: &mut Vec<Range<usize>>) {
    let mut keyword = start;
    while QUALIFIERS.contains(&text(tokens, keyword)) && text(tokens, keyword + 2) != ":" {
        keyword += 1;
    }
    match text(tokens, keyword) {
        "fn" => ranges.push(keyword..end(tokens, keyword, &["{", ";"])),
        "use" | "type" => ranges.push(keyword..end(tokens, keyword, &[";"])),
        "const" | "static" => ranges.push(keyword..end(tokens, keyword, &["=", ";"])),
        "struct" => ranges.push(keyword..end(tokens, keyword, &["{", "(", ";"])),
        "enum" => ranges.push(keyword..closing(tokens, end(tokens, keyword, &["{"]))),
        "trait" => {
            let body = end(tokens, keyword, &["{"]);
            ranges.push(keyword..body);
            members(tokens, body, ranges);
        }
        "mod" | "union" | "macro" => {}
        _ => ranges.push(start..end(tokens, start, &[",", ";", "}", ")"])),
    }
}

/// Adds the signatures of a trait's items to `ranges`; `body` is the index of the trait's `{`.
fn members(tokens: &[Token<'_>], body: usize, ranges: &mut Vec<Range<usize>>) {
    let close = closing(tokens, body);
    let mut at = body + 1;
    while at < close {
        match tokens[at].text {
            "fn" => {
                let stop = end(tokens, at, &["{", ";"]);
                ranges.push(at..stop);
                at = if text(tokens, stop) == "{" {
                    closing(tokens, stop)
                } else {
                    stop
                };
            }
            "type" | "const" => {
                let stop = end(tokens, at, &[";"]);
                ranges.push(at..stop);
                at = stop;
            }
            _ => at += 1,
        }
    }
}

/// Returns whether `header` is that of a `From` or `TryFrom` impl for a public type.
fn is_conversion(header: &[Token<'_>], private: &BTreeSet<&str>) -> bool {
    let converts = header
        .windows(2)
        .any(|pair| matches!(pair[0].text, "From" | "TryFrom") && pair[1].text == "<");
    let mut target = header
        .iter()
        .skip_while(|token| token.text != "for")
        .skip(1);
    converts && !target.any(|token| private.contains(token.text))
}

/// Returns the names of all structs and enums that are private or have restricted visibility (`pub(…)`).
fn private_types<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| matches!(token.text, "struct" | "enum"))
        .filter(|(at, _)| *at == 0 || tokens[at - 1].text != "pub")
        .filter_map(|(at, _)| tokens.get(at + 1).map(|name| name.text))
        .collect()
}

/// Returns the index of the first token after `start` that is one of `signs`.
///
/// Ignores the contents of brackets that open after `start`; `<` and `>` count as brackets. Returns the
/// number of tokens if no such token exists.
fn end(tokens: &[Token<'_>], start: usize, signs: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        if depth == 0 && at > start && signs.contains(&token.text) {
            return at;
        }
        match token.text {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the index after the bracket that closes the bracket at the index `open`.
///
/// Returns the number of tokens if there is none.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}
