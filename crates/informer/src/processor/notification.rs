//! [`Notification`] is a message in a listener's buffer, with one or more events. [`Expansion`] iterates over
//! the events of a notification.
//!
//! A listener is a registered handler or subscription. This module does not store or deliver notifications.

use std::sync::Arc;

use derive_where::derive_where;

use crate::{
    event_handler::Event,
    indexer::{Cause, Changed, Snapshot},
    object::{Deleted, ObjectName},
};

/// A message in a listener's buffer. A message contains one event, two events of one object, or all events of
/// a list, a resync or the initial objects.
pub(crate) enum Notification<K> {
    One(Event<K>),
    /// A deletion of an object, and a later addition with the same name.
    Both(Event<K>, Event<K>),
    /// The objects that were in the cache when the listener was added. They are delivered as `Added` events.
    Join(Snapshot<K>),
    /// A list that replaced the cache's state `old` with the state `new`.
    Replaced {
        old: Snapshot<K>,
        new: Snapshot<K>,
        changed: Arc<Changed>,
        in_initial_list: bool,
        /// Whether the listener also receives the unchanged objects of the list. Their flag in
        /// [`Changed::listed`] is false.
        unchanged: bool,
    },
    /// A resync: all objects of this snapshot are delivered again, as unchanged updates.
    Resync(Snapshot<K>),
}

impl<K> Notification<K> {
    pub(super) fn is_resync(&self) -> bool {
        matches!(
            self,
            Self::Resync(_)
                | Self::One(Event::Updated {
                    cause: Cause::Resync,
                    ..
                })
        )
    }

    /// Returns an upper limit for the number of events in this message, in constant time.
    pub(super) fn events_max(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Both(..) => 2,
            Self::Join(cache) | Self::Resync(cache) => cache.len(),
            Self::Replaced { changed, .. } => changed.gone.len() + changed.listed.len(),
        }
    }

    /// Returns the object's name, if the message is about a single object.
    pub(super) fn object_name(&self) -> Option<&ObjectName> {
        match self {
            Self::One(event) | Self::Both(event, _) => event.object_name(),
            Self::Join(_) | Self::Replaced { .. } | Self::Resync(_) => None,
        }
    }

    /// Returns the number of events in this message.
    ///
    /// Objects that failed to decode are counted, although they are not delivered.
    pub(super) fn events(&self) -> u64 {
        let events = match self {
            Self::Replaced {
                changed, unchanged, ..
            } => {
                let listed = changed.listed.iter();
                let told = listed.filter(|(_, changed)| *changed || *unchanged);
                changed.gone.len() + told.count()
            }
            _ => self.events_max(),
        };
        events as u64
    }
}

/// Iterates over the events of notifications, one notification after the other.
pub(crate) trait Events<K> {
    /// Starts the iteration over a new notification, and drops the rest of the previous one.
    fn begin(&mut self, expansion: Expansion<K>);

    /// Returns the next event of the notification.
    ///
    /// With each call, the caller confirms that the previous event has been delivered.
    fn next(&mut self) -> Option<Event<K>>;

    /// Returns how many events of the current notification `next` has not returned yet.
    fn rest(&self) -> u64;
}

#[derive_where(Default)]
pub(crate) struct Expansion<K> {
    notification: Option<Notification<K>>,
    /// Index of the next event in a [`Notification::Both`] or [`Notification::Replaced`].
    at: usize,
    /// For a [`Notification::Join`] or [`Notification::Resync`]: name of the object in the last returned
    /// event. The next event is about the first object after this name.
    after: Option<ObjectName>,
    /// Number of events that have been returned.
    told: u64,
}

impl<K> Expansion<K> {
    pub(crate) fn new(notification: Notification<K>) -> Self {
        Self {
            notification: Some(notification),
            ..Self::default()
        }
    }

    /// Returns whether the notification is a list, a resync or an initial state.
    pub(crate) fn is_bulk(&self) -> bool {
        matches!(
            self.notification,
            Some(Notification::Join(_) | Notification::Replaced { .. } | Notification::Resync(_))
        )
    }

    fn unfold(&mut self) -> Option<Event<K>> {
        match self.notification.take()? {
            Notification::One(event) => Some(event),
            Notification::Both(first, second) => {
                self.at += 1;
                if self.at > 1 {
                    return Some(second);
                }
                self.notification = Some(Notification::Both(first.clone(), second));
                Some(first)
            }
            Notification::Join(cache) => {
                let object = cache.told_after(self.after.as_ref())?.clone();
                self.after = Some(object.object_name().clone());
                self.notification = Some(Notification::Join(cache));
                Some(Event::Added {
                    object,
                    in_initial_list: true,
                })
            }
            Notification::Resync(cache) => {
                let object = cache.after(self.after.as_ref())?.clone();
                self.after = Some(object.object_name().clone());
                self.notification = Some(Notification::Resync(cache));
                Some(Event::Updated {
                    old: object.clone(),
                    new: object,
                    cause: Cause::Resync,
                })
            }
            Notification::Replaced {
                old,
                new,
                changed,
                in_initial_list,
                unchanged,
            } => {
                let event = loop {
                    let at = self.at;
                    self.at += 1;
                    let event = match changed.gone.get(at) {
                        Some(name) => gone(&old, name),
                        None => match changed.listed.get(at - changed.gone.len()) {
                            None => return None,
                            Some((_, false)) if !unchanged => None,
                            Some((name, _)) => listed(&old, &new, name, in_initial_list),
                        },
                    };
                    if let Some(event) = event {
                        break event;
                    }
                };
                self.notification = Some(Notification::Replaced {
                    old,
                    new,
                    changed,
                    in_initial_list,
                    unchanged,
                });
                Some(event)
            }
        }
    }
}

impl<K> Events<K> for Expansion<K> {
    fn begin(&mut self, expansion: Self) {
        *self = expansion;
    }

    fn next(&mut self) -> Option<Event<K>> {
        let event = self.unfold();
        self.told += u64::from(event.is_some());
        event
    }

    fn rest(&self) -> u64 {
        let rest = self.notification.as_ref();
        rest.map_or(0, |rest| rest.events().saturating_sub(self.told))
    }
}

/// Returns the deletion event for an object that is in `old` but not in a later list.
///
/// Returns `None` if handlers never received the object.
fn gone<K>(old: &Snapshot<K>, name: &ObjectName) -> Option<Event<K>> {
    let last_known = old.told(name)?.clone();
    Some(Event::Deleted(Deleted::FinalStateUnknown {
        name: name.clone(),
        last_known: Some(last_known),
    }))
}

fn listed<K>(
    old: &Snapshot<K>,
    new: &Snapshot<K>,
    name: &ObjectName,
    in_initial_list: bool,
) -> Option<Event<K>> {
    let object = new
        .get(name)
        .filter(|object| object.broken().is_none())?
        .clone();
    Some(match old.told(name) {
        None => Event::Added {
            object,
            in_initial_list,
        },
        Some(old) => Event::Updated {
            old: old.clone(),
            new: object,
            cause: Cause::Relist,
        },
    })
}
