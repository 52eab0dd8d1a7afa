//! Collects the objects of a streaming list. Delivers the objects to the store as one change when the
//! bookmark that ends the streaming list arrives.
//!
//! If a streaming list ends before that bookmark, the store receives none of its objects. The module neither
//! reads the response nor decodes objects.

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    super::{Error, ReflectorStore, Reporter, machine::Action},
    Again, List, Piece, Running, Stop,
};
use crate::{
    codec::{Frame, FrameKind},
    decode::{self, Decoded},
    object::{Object, ObjectName, ResourceVersion},
    status::Activity,
    transport::{self, Class},
};

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Applies one event of a streaming list to `list`. If the event is the end bookmark, returns the
    /// bookmark's revision.
    ///
    /// The store receives nothing until [`complete`](Self::complete) is called.
    pub(super) fn initial_event(
        &mut self,
        Piece { frame, decoded, .. }: Piece<K>,
        list: &mut List<K>,
    ) -> Result<Option<ResourceVersion>, Stop> {
        let (kind, object) = (&frame.kind, frame.object());
        list.budget.more_bytes(frame.bytes.len())?;
        let mut is_new = false;
        let revision = match kind {
            FrameKind::Error => return Err(transport::Error::of_event(object).into()),
            FrameKind::Bookmark => {
                let revision = decode::revision(object);
                if let Some(revision) = &revision
                    && object.ends_initial_events()
                {
                    return Ok(Some(revision.clone()));
                }
                revision
            }
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                match self.staged_object(&frame, decoded, list)? {
                    Some(object) => {
                        let revision = object.revision().clone();
                        if *kind == FrameKind::Deleted {
                            list.unstage(object.object_name());
                        } else {
                            is_new = list.stage(object);
                        }
                        list.budget.objects_in_all(list.len())?;
                        Some(revision)
                    }
                    None => decode::revision(object),
                }
            }
            FrameKind::Unknown(unknown) => {
                let error = Error::UnknownEvent(unknown.clone());
                list.report(&error, &self.reflector.report);
                let what = format!("the streaming list sent an event of unknown type {unknown:?}");
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            FrameKind::Item => None,
        };
        let now = Instant::now();
        self.machine
            .initial_event(kind, revision.as_ref(), is_new, now);
        Ok(None)
    }

    fn staged_object(
        &mut self,
        frame: &Frame,
        decoded: Option<Decoded<K>>,
        list: &mut List<K>,
    ) -> Result<Option<Object<K>>, Stop> {
        let Some(decoded) = decoded else {
            return Ok(None);
        };
        // An unreadable object in an Added event is left out, as in a LIST.
        let is_doubtful = frame.kind != FrameKind::Added && decoded.names_no_state(frame.object());
        let object = list.usable(decoded, self.machine.epoch(), &self.reflector.report);
        if is_doubtful {
            let what = "the streaming list sent an object whose name or revision can't be read";
            return Err(transport::Error::new(Class::Protocol, what).into());
        }
        Ok(object)
    }

    /// Sends a streaming list to the store as one change, at the revision of the end bookmark.
    pub(super) async fn complete(
        &mut self,
        revision: ResourceVersion,
        list: &mut List<K>,
    ) -> Result<(), Stop> {
        self.machine.end_in_order(&revision)?;
        if list.len() == 0 && self.has_objects() {
            return Err(Stop::Again(Again::Unconfirmed));
        }
        self.keep_house(Some(list), false).await;
        self.hand_on_all(list, revision.clone()).await?;
        self.pieces.forget_known();
        self.machine.streamed(revision, Instant::now());
        self.activity(Activity::Watching);
        Ok(())
    }

    /// Returns whether the store has at least one object of this reflector's source.
    fn has_objects(&self) -> bool {
        // No object has an empty name, so a limit of 0 is exceeded by any object.
        let nothing = ObjectName::cluster("");
        let source = self.reflector.source;
        self.reflector.store.is_full(source, &nothing, 0)
    }

    pub(super) fn streaming(&self, list: &List<K>) {
        let objects = list.len();
        self.activity(Activity::Streaming { objects });
    }

    /// Records that a streaming list ended before the store accepted its objects.
    ///
    /// If `next` is a LIST, the metrics report both lists as one. The end of the streaming list then does not
    /// add to the consecutive failures.
    pub(super) fn end_initial_events(&mut self, unfinished: &List<K>, next: &Action) {
        if !matches!(next, Action::List { .. }) {
            self.meter.list_ended(unfinished.len(), false);
            return;
        }
        // The LIST belongs to the same attempt.
        self.failures = self.failures.saturating_sub(1);
        let Reporter { name, expects, .. } = &self.reflector.report;
        if self.failures == 0 {
            tracing::info!(reflector = %name, %expects, "the streaming list failed; listing instead");
        } else {
            tracing::debug!(reflector = %name, %expects, "the streaming list failed; listing instead");
        }
    }
}
