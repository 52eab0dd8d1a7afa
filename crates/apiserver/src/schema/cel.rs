//! Evaluates the rules of schemas (`x-kubernetes-validations`) as kube-apiserver 1.36 does.
//!
//! [`Validator`] compiles the rules of a schema, and checks objects.
//!
//! Guarantees:
//! - A rule never panics, and its evaluation ends: [`nesting`] bounds the size of an expression, [`check`]
//!   the count and depth of its nodes, and [`cost`] the work of an evaluation.
//! - Types, functions, macros, costs and messages are those of cel-go 0.26 in the environment of Kubernetes
//!   1.36, apart from the differences below.
//!
//! # Crate
//!
//! The crate `cel` parses expressions. The checker and the evaluator are our own.
//!
//! The parser of `cel` 0.15 is a port of cel-go's, and accepts what cel-go accepts. Its interpreter can't be
//! corrected from outside, because its values are fixed and it has no type checker, no cost, and other
//! messages. Of the 736 rules of Kubernetes' own tests that compile, the interpreter has Kubernetes' result
//! for 429, and this module for all.
//! The crate `kube-cel` 0.8 adds Kubernetes' functions to `cel` 0.13. It has another result or error for 39
//! of 151 rules, and needs 73 crates, where the parser needs 32.
//!
//! # Differences from Kubernetes
//!
//! - Brackets and conditions can be nested [`nesting::MAX_NESTING`] deep, instead of 250. Long expressions
//!   and repeated `optMap` can exceed further limits that cel-go does not have. The limit of operators counts
//!   each `in` in a name too, so a sum of calls of `string` is limited to about 125 terms.
//! - An evaluation also ends if it compares or copies too many values, which has no cost in Kubernetes.
//! - Errors of one object beyond 8 MiB are not reported.
//! - Where cel-go has an internal error, such as a list method of a value of another type, the rule has an
//!   ordinary error. A call whose argument has the type `dyn` uses the type of the value, where cel-go
//!   sometimes expects the type that it inferred.
//! - Some messages about syntax errors and about texts that are not an IPv6 address have fewer details.

mod cel_type;
mod check;
mod cost;
mod declared;
mod equality;
mod escape;
mod estimate;
mod eval;
mod function;
mod issue;
mod named_format;
mod nesting;
mod net;
mod node;
mod overloads;
mod parse;
mod program;
mod semver;
mod structural;
mod time;
mod url;
mod validator;
mod value;

pub(crate) use validator::{Budget, Rules, Validator};
