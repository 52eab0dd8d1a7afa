//! Performs the actions of the informer's users. Users register and remove handlers, add and remove indexes,
//! and write and delete objects.
//!
//! After a write or a deletion, a background task waits until the cache reflects the change.

use std::{sync::Arc, time::Duration};

use kube_informer::{
    Object, SharedInformer,
    shared_informer::{ListenerBuffer, Registration, RevisionError},
};

use super::{World, Wrong};
use crate::{
    history::History,
    life::{Act, Handler, Key, NAMES, NAMESPACES, Written},
    planted::Bug,
    stored::Stored,
};

/// Name of the index that users add and remove while the informer runs.
pub(super) const LATE_INDEX: &str = "third";

/// Timeout of a wait for a user's own write, longer than any simulated run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// A registered event handler, with its settings and its recorded events.
pub(super) struct User<K> {
    pub(super) handler: Handler,
    pub(super) history: History,
    pub(super) registration: Registration<K>,
}

impl<K: Stored> User<K> {
    /// Returns whether the handler's buffer blocks the informer when the buffer is full.
    pub(super) fn holds_up(&self) -> bool {
        self.handler.bound().is_some()
    }

    /// Returns the maximum number of notifications in the handler's buffer, including the one in progress.
    ///
    /// Without a limit, returns `usize::MAX`.
    pub(super) fn depth_max(&self) -> usize {
        let telling = 1;
        match self.handler.buffer {
            ListenerBuffer::Block(most) => most.get() + telling,
            // One deletion and one addition per object.
            ListenerBuffer::Coalesce => 2 * NAMES * NAMESPACES.len() + telling,
            _ => usize::MAX,
        }
    }

    pub(super) fn check_history(&self) -> Result<(), Wrong> {
        let wrong = self.history.wrong();
        wrong.map_or(Ok(()), |wrong| {
            Err(format!("{}: {wrong}", self.registration.status().name))
        })
    }
}

impl<K: Stored> World<'_, K> {
    pub(super) async fn act(&mut self, act: &Act) -> Result<(), Wrong> {
        match act {
            Act::Join(handler) => self.join(handler).await?,
            Act::Leave(number) => self.leave(*number).await?,
            Act::AddIndex => self.add_index().await?,
            Act::RemoveIndex => {
                // The index may not exist.
                let _ = self.informer.informer.remove_index(LATE_INDEX).await;
            }
            Act::Restart { kill } => self.restart(*kill).await?,
            Act::WriteAndRead(written) => self.write_and_read(*written)?,
            Act::DeleteAndRead(key) => self.delete_and_read(*key)?,
        }
        Ok(())
    }

    pub(super) async fn join(&mut self, handler: &Handler) -> Result<(), Wrong> {
        let history = History::new(handler, &self.life.setting);
        if !self.harm.is_empty() {
            history.lied();
        }
        let informer = &self.informer.informer;
        let late = self.bug == Some(Bug::LateWithoutBarrier) && informer.has_synced();
        if late {
            let wanted = |object: &&Object<K>| {
                !handler.filtered || object.labels().get("app") == Some("web")
            };
            for object in informer.indexer().snapshot().iter().filter(wanted) {
                history.note(object);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let listening = history.listening(handler);
        let listening = crate::planted::Late::new(listening, late);
        let buffer = match self.bug {
            Some(Bug::BoundIgnored) => ListenerBuffer::Grow,
            _ => handler.buffer,
        };
        let builder = informer
            .handler(listening)
            .name(format!("handler-{}", self.users.len()))
            .resync(Duration::from_secs(handler.resync))
            .buffer(buffer);
        let registered = if handler.filtered {
            let web = |object: &Object<K>| object.labels().get("app") == Some("web");
            builder.filter(web).register()
        } else {
            builder.register()
        };
        let registration = registered.map_err(|error| error.to_string())?;
        self.users.push(User {
            handler: *handler,
            history,
            registration,
        });
        Ok(())
    }

    async fn leave(&mut self, number: usize) -> Result<(), Wrong> {
        if self.users.len() < 2 {
            return Ok(());
        }
        // The first handler stays, so that one handler receives the events of all objects.
        let user = self.users.remove(1 + number % (self.users.len() - 1));
        let removed = super::timeout(super::STOPS_WITHIN, user.registration.remove());
        if super::sound(removed).await?.is_err() {
            return Err("the removal of a handler did not complete in time".to_owned());
        }
        if user.history.is_being_told() {
            return Err("a callback is running after the handler was removed".to_owned());
        }
        let told = user.history.state();
        for _ in 0..10 {
            super::yield_now().await;
        }
        if told != user.history.state() {
            return Err("a removed handler received an event".to_owned());
        }
        self.outcome.trace.append(&mut user.history.take_lines());
        user.history.wrong().map_or(Ok(()), Err)
    }

    async fn add_index(&mut self) -> Result<(), Wrong> {
        let function = crate::planted::index_function(self.bug);
        let informer = &self.informer.informer;
        let adding = informer.add_index(LATE_INDEX, move |object: &K| {
            let labels = object.meta().labels.as_ref()?;
            let value = labels.get("v").and_then(|value| value.parse().ok())?;
            let name = object.meta().name.clone().unwrap_or_default();
            Some(function(&name, value))
        });
        // The index may already exist.
        let _ = super::sound(adding).await?;
        Ok(())
    }

    fn write_and_read(&mut self, written: Written) -> Result<(), Wrong> {
        let Some(answer) = self.write(written) else {
            return Ok(());
        };
        let wanted = self
            .life
            .setting
            .wants(written.key.namespace(), written.web);
        if !wanted {
            return Ok(());
        }
        let object: K = serde_json::from_value(answer).map_err(|error| error.to_string())?;
        let revision = number(object.meta().resource_version.as_ref());
        let overlay = &self.informer.overlay;
        let put = overlay.put(object.clone());
        put.map_err(|error| error.to_string())?;
        self.informer.woken.wrote(&written.key.object_name());
        let read = overlay.find(&written.key.object_name());
        let read = read.map_or(0, |object| order(&object));
        if read < revision && self.harm.is_empty() {
            return Err(format!(
                "{} was written at revision {revision}, but the overlay returns {read}",
                written.key
            ));
        }
        let informer = self.informer.informer.clone();
        self.reads.spawn(async move {
            match informer.wait_for_revision(&object, FOR_EVER).await {
                Ok(()) => has_at_least(&informer, written.key, revision),
                Err(RevisionError::WentBack { .. } | RevisionError::Stopped { .. }) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        });
        Ok(())
    }

    fn delete_and_read(&mut self, key: Key) -> Result<(), Wrong> {
        let Some(deleted) = self.delete(key) else {
            return Ok(());
        };
        let web = deleted["metadata"]["labels"]["app"] == "web";
        if !self.life.setting.wants(key.namespace(), web) {
            return Ok(());
        }
        let uid = deleted["metadata"]["uid"].as_str().unwrap_or_default();
        let uid: Arc<str> = Arc::from(uid);
        let overlay = &self.informer.overlay;
        overlay.delete(&key.object_name(), Arc::clone(&uid));
        self.informer.woken.wrote(&key.object_name());
        let read = overlay.find(&key.object_name());
        if read.is_some_and(|object| object.uid() == &*uid) && self.harm.is_empty() {
            return Err(format!("{key} was deleted, but the overlay returns it"));
        }
        let informer = self.informer.informer.clone();
        let name = key.object_name();
        self.reads.spawn(async move {
            // A new object may have the same name, but it has another UID.
            let gone = informer.wait_for_deleted(&name, &*uid, FOR_EVER).await;
            if gone.is_ok() && !informer.has_synced() {
                return Err(format!(
                    "the wait for the deletion of {key} ended before the first list"
                ));
            }
            let read = informer.indexer().get(&name);
            match read {
                Some(object) if object.uid() == &*uid && !informer.is_stopped() => Err(format!(
                    "the wait for the deletion of {key} ended, but the cache returns it"
                )),
                _ => Ok(()),
            }
        });
        Ok(())
    }
}

fn has_at_least<K: Stored>(
    informer: &SharedInformer<K>,
    key: Key,
    revision: u64,
) -> Result<(), Wrong> {
    let read = informer.indexer().get(&key.object_name());
    match read {
        Some(object) if order(&object) < revision && !informer.is_stopped() => Err(format!(
            "the wait for {key} at revision {revision} ended, but the cache returns {}",
            order(&object)
        )),
        _ => Ok(()),
    }
}

fn order<K>(object: &Object<K>) -> u64 {
    number(Some(&object.revision().to_string()))
}

fn number(revision: Option<&String>) -> u64 {
    let number = revision.and_then(|revision| revision.parse().ok());
    number.unwrap_or_default()
}
