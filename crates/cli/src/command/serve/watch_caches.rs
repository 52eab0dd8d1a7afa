//! Parses the arguments of `--watch-cache-sizes`, and sets the watch caches on the embedded server's builder.
//!
//! The settings are from the flags `--watch-cache` (on or off), `--default-watch-cache-size` and
//! `--watch-cache-sizes`, which have the names of kube-apiserver's flags. A size is a number of events.
//! kube-apiserver only distinguishes zero from other sizes. The embedded server uses the exact size.
//!
//! Guarantees: an argument of `--watch-cache-sizes` that does not name a resource of the server is rejected.

use std::str::FromStr;

use kube_informer_apiserver::{Builder, Kinds, WatchCache};

use super::seeding;

/// A parsed argument of `--watch-cache-sizes`, such as `pods#1000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheSize {
    /// Plural and group of the resource, such as `deployments.apps`.
    pub(crate) resource: String,
    events: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchCaches {
    /// Setting for resources that are not in `sizes`.
    pub(crate) default: WatchCache,
    pub(crate) sizes: Vec<CacheSize>,
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, events) = text
            .split_once('#')
            .ok_or("expected RESOURCE#EVENTS, such as pods#1000")?;
        let kinds = Kinds::builtin();
        let kind = seeding::kind_named(&kinds, resource).ok_or_else(|| {
            format!(
                "unknown resource {resource:?}; expected a name such as pods or deployments.apps"
            )
        })?;
        let events = events
            .parse()
            .map_err(|_| format!("{events:?} is not a number of events, such as 1000"))?;
        Ok(Self {
            resource: kind.group_resource(),
            events,
        })
    }
}

impl WatchCaches {
    /// Applies the settings to the server's builder.
    pub(super) fn set(&self, builder: Builder) -> Builder {
        let builder = builder.watch_cache(self.default);
        self.sizes.iter().fold(builder, |builder, size| {
            builder.watch_cache_for(&size.resource, WatchCache::Size(size.events))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_for_a_resource_in_all_its_versions() {
        let size = |text: &str| text.parse::<CacheSize>().map(|it| (it.resource, it.events));
        assert_eq!(size("pods#1000"), Ok(("pods".to_owned(), 1_000)));
        assert_eq!(size("nodes#0"), Ok(("nodes".to_owned(), 0)));
        for name in ["deployments.apps", "deploy"] {
            let size = size(&format!("{name}#5"));
            assert_eq!(size, Ok(("deployments.apps".to_owned(), 5)));
        }
    }

    #[test]
    fn a_mistake_is_reported_in_one_line() {
        for (text, says) in [
            ("pods", "pods#1000"),
            ("pods=3", "pods#1000"),
            ("unicorns#3", "unknown resource \"unicorns\""),
            ("pods#many", "\"many\" is not a number of events"),
            ("pods#-1", "\"-1\" is not"),
            ("pods#", "\"\" is not"),
        ] {
            let error = text.parse::<CacheSize>().unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
