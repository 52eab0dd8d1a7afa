//! What every program that is measured may be told; the Go program takes the same flags.

use clap::{Args, ValueEnum};

/// How a program is set up, and what it goes through.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// The source's address, of plain HTTP
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// Whether managedFields are dropped before an object is kept
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub prune: bool,
    /// How everything is asked for at the beginning and after an expired watch
    #[arg(long, value_enum, default_value_t = List::Streaming)]
    pub list: List,
    /// What the handler does with an event
    #[arg(long, value_enum, default_value_t = Handler::Objects)]
    pub handler: Handler,
    /// How many events are watched once everything is synced
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub events: u64,
    /// Events a second; 0 is as fast as they are taken
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    pub rate: u64,
    /// How often everything is listed again, after a watch that has expired
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub relist: u64,
}

/// How everything is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum List {
    /// A watch that begins with everything (`sendInitialEvents`).
    Streaming,
    /// Lists, in the pages that the client asks for by default.
    Paged,
}

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Handler {
    /// Looks into each object: counts the containers of its specification, and reads when it was sent.
    Objects,
    /// Takes the namespace and the name.
    Keys,
}
