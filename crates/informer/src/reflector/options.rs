//! What can be set about the requests of a reflector. Each option is defined here and nowhere else: its type
//! and the name that errors call it by in the table, its setter, which every builder has, with its
//! documentation in `request_methods!`.
//!
//! An option that was not set is `None` until it is read, so that what is set nearer to an informer can be
//! laid over what is set for all ([`RequestOptions::or`]).

use std::time::Duration;

use super::{BackoffConfig, InitialList, RollbackDetection, TimeoutConfig};
use crate::limits::Limits;

/// Makes a struct of options from a table of their names, types, defaults, and what a conflict calls them.
macro_rules! options {
    (
        $(#[$attribute:meta])*
        $options:ident { $($name:ident: $type:ty = $default:expr, $called:literal;)* }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub(crate) struct $options {
            $(pub(crate) $name: Option<$type>,)*
        }

        impl $options {
            $(
                pub(crate) fn $name(&self) -> $type {
                    self.$name.unwrap_or($default)
                }
            )*

            /// These, and for those that are not set the more `general` ones.
            pub(crate) fn or(self, general: Self) -> Self {
                Self { $($name: self.$name.or(general.$name),)* }
            }

            /// What the first option that differs is called.
            pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
                let differ = [$(($called, self.$name != other.$name)),*];
                differ.into_iter().find_map(|(called, differs)| differs.then_some(called))
            }
        }
    };
}
pub(crate) use options;

options! {
    /// What can be set about the requests of a reflector.
    RequestOptions {
        page_size: u32 = 0, "page size";
        watch_timeout_min: Duration = Duration::ZERO, "minimum watch timeout";
        internal_error_retry: Duration = Duration::ZERO, "retry of internal errors";
        backoff: BackoffConfig = BackoffConfig::default(), "backoff";
        timeouts: TimeoutConfig = TimeoutConfig::default(), "timeouts";
        limits: Limits = Limits::default(), "limits";
        initial_list: InitialList = InitialList::default(), "initial list";
        rollback_detection: RollbackDetection = RollbackDetection::default(), "rollback detection";
    }
}

/// The setters of [`RequestOptions`], for a builder that has them at this path.
macro_rules! request_methods {
    ($($path:ident).+) => {
        /// Requests lists in pages of this size; zero is as if it were not called.
        ///
        /// Without this call [`InitialList::Pages`](crate::reflector::InitialList) has pages of 500, and
        /// [`InitialList::List`](crate::reflector::InitialList) only where the watch cache ignores it or does
        /// not exist. With it, `InitialList::List` requests pages at a revision, which the API server answers
        /// from etcd instead of its watch cache; that costs it much more.
        #[doc(alias = "WatchListPageSize")]
        pub fn page_size(mut self, objects: u32) -> Self {
            self.$($path).+.page_size = Some(objects);
            self
        }

        /// A watch is asked to end after one to two times this, in whole seconds; never less than 5 minutes.
        #[doc(alias = "MinWatchTimeout")]
        pub fn watch_timeout_min(mut self, timeout: ::std::time::Duration) -> Self {
            self.$($path).+.watch_timeout_min = Some(timeout);
            self
        }

        /// For this long after the first of a series of internal errors (HTTP 500, `InternalError`) inside
        /// watches, these are opened again from the last revision instead of being listed after. A minute
        /// without such an error ends the series. Zero, the default, retries none.
        #[doc(alias = "MaxInternalErrorRetryDuration")]
        pub fn internal_error_retry(mut self, budget: ::std::time::Duration) -> Self {
            self.$($path).+.internal_error_retry = Some(budget);
            self
        }

        /// The pauses after failures.
        pub fn backoff(mut self, backoff: crate::reflector::BackoffConfig) -> Self {
            self.$($path).+.backoff = Some(backoff);
            self
        }

        /// After how long a reflector no longer waits for a streaming list to end, for a silent watch, and for
        /// a full store.
        pub fn timeouts(mut self, timeouts: crate::reflector::TimeoutConfig) -> Self {
            self.$($path).+.timeouts = Some(timeouts);
            self
        }

        /// How much of each collection the server may send; see [`Limits`](crate::limits::Limits) for the
        /// defaults.
        pub fn limits(mut self, limits: crate::limits::Limits) -> Self {
            self.$($path).+.limits = Some(limits);
            self
        }

        /// How everything is requested, at the beginning and whenever watching can't bring the cache up to
        /// date: in pages of the newest state by default, which costs the server least.
        /// [`InitialList::List`](crate::reflector::InitialList) is for servers before Kubernetes 1.34, whose
        /// watch cache answers no pages.
        pub fn initial_list(mut self, initial_list: crate::reflector::InitialList) -> Self {
            self.$($path).+.initial_list = Some(initial_list);
            self
        }

        /// Whether a reflector checks that the server has not gone back in time: on by default. See
        /// [`RollbackDetection`](crate::reflector::RollbackDetection) for what it costs, and when it is in the
        /// way.
        pub fn rollback_detection(
            mut self,
            detection: crate::reflector::RollbackDetection,
        ) -> Self {
            self.$($path).+.rollback_detection = Some(detection);
            self
        }
    };
}
pub(crate) use request_methods;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_nearer_holds_and_the_rest_is_that_of_all() {
        let near = RequestOptions {
            page_size: Some(7),
            ..RequestOptions::default()
        };
        let of_all = RequestOptions {
            page_size: Some(9),
            initial_list: Some(InitialList::List),
            ..RequestOptions::default()
        };
        let both = near.or(of_all);
        assert_eq!(
            (both.page_size(), both.initial_list()),
            (7, InitialList::List)
        );
        assert_eq!(both.limits(), Limits::default());
        assert_eq!(both.difference(&of_all), Some("page size"));
        assert_eq!(near.difference(&near), None);
    }
}
