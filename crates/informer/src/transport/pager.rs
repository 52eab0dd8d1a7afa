//! [`Pager`] determines the options of the request for each page of a list. The pager does not send requests
//! or store objects.
//!
//! Guarantees: a list ends with [`AfterPage::Endless`] if the server repeats a continue token. A list
//! restarts at most once, after its continue token has expired.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{Class, ListOptions};
use crate::{codec::ListEnd, object::ResourceVersion};

/// Builds the options of the requests for one list, from its first page to its last page.
///
/// If a continue token has expired, the pager restarts the list once, without a page size. The caller must
/// then discard the objects of the earlier pages.
#[doc(alias = "ListPager")]
#[derive(Debug)]
pub(crate) struct Pager {
    first: ListOptions,
    next: ListOptions,
    pages: u32,
    revision: ResourceVersion,
    paginated: bool,
    /// Hashes of the received continue tokens, to detect a list that would never end.
    seen: BTreeSet<u64>,
    fell_back: bool,
}

/// The caller's next step after a page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterPage {
    /// The list has another page; [`Pager::request`] returns the options to request it.
    More,
    /// The list is complete. The value is the resource version of its first page.
    Done(ResourceVersion),
    /// Abort the list, which would never end: the server repeated a continue token.
    Endless,
}

impl Pager {
    pub(crate) fn new(options: ListOptions) -> Self {
        Self {
            next: options.clone(),
            first: options,
            pages: 0,
            revision: ResourceVersion::UNSET,
            paginated: false,
            seen: BTreeSet::new(),
            fell_back: false,
        }
    }

    /// Returns the options of the next request of the list.
    pub(crate) fn request(&self) -> &ListOptions {
        &self.next
    }

    pub(crate) fn first_request(&self) -> &ListOptions {
        &self.first
    }

    /// Returns whether the server has sent a continue token.
    pub(crate) fn is_paginated(&self) -> bool {
        self.paginated
    }

    /// Returns the number of pages received since the list was started or last restarted.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    pub(crate) fn page(&mut self, end: &ListEnd) -> AfterPage {
        self.pages += 1;
        if self.pages == 1 {
            self.revision = end.resource_version.as_str().into();
        }
        let Some(token) = end.continue_token.clone().filter(|token| !token.is_empty()) else {
            self.next.continue_token = None;
            return AfterPage::Done(self.revision.clone());
        };
        self.paginated = true;
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return AfterPage::Endless;
        }
        self.next.continue_token = Some(token);
        self.next.resource_version = ResourceVersion::UNSET;
        self.next.resource_version_match = None;
        AfterPage::More
    }

    /// Restarts the list if its continue token has expired. Returns whether the list restarts.
    ///
    /// The list restarts at most once, with one request for all objects.
    pub(crate) fn restarts_after(&mut self, class: Class) -> bool {
        if class != Class::Expired || self.next.continue_token.is_none() || self.fell_back {
            return false;
        }
        self.fell_back = true;
        self.pages = 0;
        self.seen.clear();
        self.next = ListOptions {
            limit: None,
            ..self.first.clone()
        };
        true
    }
}

#[cfg(test)]
mod tests;
