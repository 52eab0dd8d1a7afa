//! Defines the options for the requests of a reflector, and the builder methods that set them.
//!
//! The macro `options!` defines [`RequestOptions`] from a table with the name, the type and the default of
//! each option. The macro `request_methods!` defines the builder methods.
//!
//! An unset option is `None`. [`RequestOptions::or`] replaces the unset options of one informer with the
//! options that all informers share.

use std::time::Duration;

use super::{BackoffConfig, InitialList, RollbackDetection, TimeoutConfig};
use crate::{limits::Limits, transport::Encoding};

/// Defines a struct of options from rows of name, type, default value and name in error messages.
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

            /// Returns `self`, with the values of `general` for the options that `self` does not set.
            pub(crate) fn or(self, general: Self) -> Self {
                Self { $($name: self.$name.or(general.$name),)* }
            }

            /// Returns the name, as used in error messages, of the first option that differs, if any.
            pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
                let differ = [$(($called, self.$name != other.$name)),*];
                differ.into_iter().find_map(|(called, differs)| differs.then_some(called))
            }
        }
    };
}
pub(crate) use options;

options! {
    /// Options for the requests of a reflector.
    RequestOptions {
        page_size: u32 = 0, "page size";
        watch_timeout_min: Duration = Duration::ZERO, "minimum watch timeout";
        internal_error_retry: Duration = Duration::ZERO, "retry of internal errors";
        backoff: BackoffConfig = BackoffConfig::default(), "backoff";
        timeouts: TimeoutConfig = TimeoutConfig::default(), "timeouts";
        limits: Limits = Limits::default(), "limits";
        initial_list: InitialList = InitialList::default(), "initial list";
        rollback_detection: RollbackDetection = RollbackDetection::default(), "rollback detection";
        encoding: Option<Encoding> = None, "encoding";
    }
}

/// Defines builder methods that set the [`RequestOptions`] in one field of the builder.
///
/// The argument is the path of this field without `self`, such as `settings.requests`.
macro_rules! request_methods {
    ($($path:ident).+) => {
        /// Sets the number of objects per page of a list. Zero restores the default.
        ///
        /// By default, [`InitialList::Pages`](crate::reflector::InitialList) requests pages of 500 objects.
        /// [`InitialList::List`](crate::reflector::InitialList) requests pages of 500 objects only with
        /// `resourceVersion=0`, for which an API server with a watch cache ignores the page size.
        ///
        /// If a page size is set, `InitialList::List` also requests pages at other revisions. The API server
        /// reads these pages from etcd instead of its watch cache, which is much more expensive for the
        /// server.
        #[doc(alias = "WatchListPageSize")]
        pub fn page_size(mut self, objects: u32) -> Self {
            self.$($path).+.page_size = Some(objects);
            self
        }

        /// Sets the minimum server-side timeout of a watch.
        ///
        /// Each watch requests a random timeout between one and two times this value, in whole seconds.
        /// Values below 5 minutes count as 5 minutes, which is the default.
        #[doc(alias = "MinWatchTimeout")]
        pub fn watch_timeout_min(mut self, timeout: ::std::time::Duration) -> Self {
            self.$($path).+.watch_timeout_min = Some(timeout);
            self
        }

        /// Sets the maximum time for which the reflector resumes a watch that ends with internal errors (HTTP
        /// 500, `InternalError`).
        ///
        /// After an internal error, the watch is requested again from the last revision. If the first error
        /// of a series of internal errors is longer ago than `budget`, a list follows instead. A minute
        /// without such an error ends the series. With zero, the default, a list follows after every internal
        /// error.
        #[doc(alias = "MaxInternalErrorRetryDuration")]
        pub fn internal_error_retry(mut self, budget: ::std::time::Duration) -> Self {
            self.$($path).+.internal_error_retry = Some(budget);
            self
        }

        /// Sets the pauses after failed requests and failed watches. See
        /// [`BackoffConfig`](crate::reflector::BackoffConfig) for the defaults.
        pub fn backoff(mut self, backoff: crate::reflector::BackoffConfig) -> Self {
            self.$($path).+.backoff = Some(backoff);
            self
        }

        /// Sets the timeouts of streaming lists and of watches, and the maximum wait for a store that is
        /// full.
        ///
        /// See [`TimeoutConfig`](crate::reflector::TimeoutConfig) for the defaults.
        pub fn timeouts(mut self, timeouts: crate::reflector::TimeoutConfig) -> Self {
            self.$($path).+.timeouts = Some(timeouts);
            self
        }

        /// Sets the limits for the server's responses. See [`Limits`](crate::limits::Limits) for the
        /// defaults.
        pub fn limits(mut self, limits: crate::limits::Limits) -> Self {
            self.$($path).+.limits = Some(limits);
            self
        }

        /// Sets the kind of request with which the reflector lists all objects, at the start and whenever a
        /// watch can't be resumed.
        ///
        /// By default, the reflector requests the newest state in pages. Servers before Kubernetes 1.34 read
        /// pages from etcd, not from their watch cache. For such a server, use
        /// [`InitialList::List`](crate::reflector::InitialList): a list without pages, which the server can
        /// read from its watch cache.
        pub fn initial_list(mut self, initial_list: crate::reflector::InitialList) -> Self {
            self.$($path).+.initial_list = Some(initial_list);
            self
        }

        /// Sets the encoding that the reflector requests.
        ///
        /// By default, the [`ListerWatcher`](crate::transport::ListerWatcher) selects the encoding.
        /// [`ListWatch`](crate::transport::client::ListWatch) selects by the type of the objects:
        ///
        /// - [`Encoding::Protobuf`](crate::transport::Encoding::Protobuf) for the types of `k8s-openapi`, and
        ///   for types that contain only metadata.
        /// - JSON for all other types, such as `DynamicObject`. These types can have fields that Kubernetes
        ///   1.37 does not define, and the protobuf decoder drops such fields.
        ///
        /// `ListWatch` always requests custom resources in JSON, even if only their metadata is requested or
        /// this method sets protobuf.
        pub fn encoding(mut self, encoding: crate::transport::Encoding) -> Self {
            self.$($path).+.encoding = Some(Some(encoding));
            self
        }

        /// Sets whether the reflector detects a server that was restored from a backup. Enabled by default.
        ///
        /// See [`RollbackDetection`](crate::reflector::RollbackDetection) for the costs, and for servers for
        /// which the detection must be disabled.
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
    fn more_specific_options_override_general_ones() {
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
