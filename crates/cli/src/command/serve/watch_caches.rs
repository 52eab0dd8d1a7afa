//! `--watch-cache`, `--default-watch-cache-size` and `--watch-cache-sizes`, as kube-apiserver spells them.
//!
//! Guarantees: what is typed names a resource that the server has; a size is kept exactly, where kube-apiserver only asks whether it is 0.

use std::str::FromStr;

use kube_informer_apiserver::{Builder, Kinds, WatchCache};

use super::seeding;

/// What `--watch-cache-sizes pods#1000` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheSize {
    /// Plural and group.
    pub(crate) resource: String,
    events: usize,
}

/// How far back watches may start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchCaches {
    /// For resources without a size of their own.
    pub(crate) default: WatchCache,
    pub(crate) sizes: Vec<CacheSize>,
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, events) = text
            .split_once('#')
            .ok_or("write a resource and how many events, such as pods#1000")?;
        let kinds = Kinds::builtin();
        let kind = seeding::kind_named(&kinds, resource).ok_or_else(|| {
            format!("there is no resource {resource:?}, such as pods or deployments.apps")
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
    /// Tells a server to be.
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
    fn a_mistake_is_named_in_one_line() {
        for (text, says) in [
            ("pods", "pods#1000"),
            ("pods=3", "pods#1000"),
            ("unicorns#3", "no resource \"unicorns\""),
            ("pods#many", "\"many\" is not a number of events"),
            ("pods#-1", "\"-1\" is not"),
            ("pods#", "\"\" is not"),
        ] {
            let error = text.parse::<CacheSize>().unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
