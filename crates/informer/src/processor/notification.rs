//! What one listener is sent, and how it unfolds into events.

use std::sync::Arc;

use crate::{
    event_handler::Event,
    indexer::{Cause, Changed, Snapshot},
    object::{Deleted, ObjectName},
};

/// One message in a listener's buffer. However many objects it concerns, it is one: a million of
/// them and 64 handlers are 64 messages.
pub(crate) enum Notification<K> {
    One(Event<K>),
    /// An object is gone, and there is one of its name again.
    Both(Event<K>, Event<K>),
    /// The cache as it was when the listener joined.
    Join(Snapshot<K>),
    /// A list was applied.
    Replaced {
        old: Snapshot<K>,
        new: Snapshot<K>,
        changed: Arc<Changed>,
        in_initial_list: bool,
        /// Whether this listener hears of objects that are as they were.
        unchanged: bool,
    },
    /// The listener is due to hear everything again.
    Resync(Snapshot<K>),
}

impl<K> Notification<K> {
    /// Whether it tells nothing new.
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

    /// At most as many events as it is, counted without looking into it.
    pub(super) fn events_max(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Both(..) => 2,
            Self::Join(cache) | Self::Resync(cache) => cache.len(),
            Self::Replaced { changed, .. } => changed.gone.len() + changed.listed.len(),
        }
    }

    /// The object it is about; `None` if it is about several, or about none.
    pub(super) fn object_name(&self) -> Option<&ObjectName> {
        match self {
            Self::One(event) | Self::Both(event, _) => event.object_name(),
            Self::Join(_) | Self::Replaced { .. } | Self::Resync(_) => None,
        }
    }

    /// How many events it is; broken objects may make it fewer.
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

/// A notification that is being told, event by event.
pub(crate) struct Expansion<K> {
    notification: Option<Notification<K>>,
    /// Where to go on: the name behind which, in a snapshot; or the place in a list of names.
    at: usize,
    after: Option<ObjectName>,
    /// Events told so far.
    told: u64,
}

impl<K> Expansion<K> {
    pub(crate) fn new(notification: Notification<K>) -> Self {
        Self {
            notification: Some(notification),
            at: 0,
            after: None,
            told: 0,
        }
    }

    /// Whether it may be of many events.
    pub(super) fn is_bulk(&self) -> bool {
        matches!(
            self.notification,
            Some(Notification::Join(_) | Notification::Replaced { .. } | Notification::Resync(_))
        )
    }

    /// How many events have not been told, without unfolding them.
    pub(crate) fn rest(&self) -> u64 {
        let rest = self.notification.as_ref();
        rest.map_or(0, |rest| rest.events().saturating_sub(self.told))
    }

    /// The next event, until there are no more.
    pub(crate) fn next(&mut self) -> Option<Event<K>> {
        let event = self.unfold();
        self.told += u64::from(event.is_some());
        event
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

/// A deletion, if the object had ever been told.
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
