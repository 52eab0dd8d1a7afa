//! Delivers the events of an open watch to the store.
//!
//! An event advances the reflector's last revision only after the store has accepted the event. The module
//! neither reads the response of the watch nor decodes objects.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{
    super::{DeltaKind, Error, ReflectorStore},
    Piece, Running, Stop,
    list::usable,
};
use crate::{
    codec::{Frame, FrameKind},
    decode::{self, Decoded},
    object::{Deleted, ObjectName, ResourceVersion},
    transport::{self, Class},
};

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Delivers one event of the open watch to the store, and then records the event's revision.
    pub(super) async fn event(&mut self, piece: Piece<K>) -> Result<(), Stop> {
        let Piece { frame, decoded, .. } = piece;
        let kind = &frame.kind;
        self.meter.event(kind);
        let revision = match kind {
            FrameKind::Error => return Err(transport::Error::of_event(frame.object()).into()),
            FrameKind::Bookmark => self.bookmark(&frame).await?,
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                self.object_event(&frame, decoded).await?
            }
            FrameKind::Unknown(unknown) => {
                // The event can't be applied, so a list follows.
                let error = Error::UnknownEvent(unknown.clone());
                self.reflector.report.skipped(&error, &mut self.skips);
                let what = format!("the watch sent an event of unknown type {unknown:?}");
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            FrameKind::Item => None,
        };
        self.machine.observe(kind, revision);
        let bookmark = *kind == FrameKind::Bookmark;
        let revision = self.machine.last_revision();
        let status = &self.reflector.report.status;
        status.progress(self.reflector.source, revision, bookmark);
        Ok(())
    }

    async fn object_event(
        &mut self,
        frame: &Frame,
        decoded: Option<Decoded<K>>,
    ) -> Result<Option<ResourceVersion>, Stop> {
        let Some(decoded) = decoded else {
            return Ok(None);
        };
        let kind = &frame.kind;
        let names_no_state = decoded.names_no_state(frame.object());
        let report = &self.reflector.report;
        let usable = usable(decoded, report, |error| {
            report.skipped(error, &mut self.skips);
        });
        let Some(object) = usable else {
            if names_no_state {
                let what = "the watch sent an object whose name or revision can't be read";
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            return self.bookmark(frame).await;
        };
        let revision = object.revision().clone();
        if self.machine.is_below_last(kind, &revision) {
            let cached = self.cached(object.object_name());
            self.machine.below_last(&revision, cached.as_ref())?;
        }
        if *kind != FrameKind::Deleted {
            self.room_for(object.object_name())?;
        }
        let delta = match kind {
            FrameKind::Added => DeltaKind::Added(object),
            FrameKind::Deleted if object.broken().is_some() => {
                let name = object.object_name().clone();
                self.hand_on(DeltaKind::Deleted(Deleted::FinalStateUnknown {
                    name,
                    last_known: None,
                }))
                .await?;
                return self.bookmark(frame).await;
            }
            FrameKind::Deleted => DeltaKind::Deleted(Deleted::Known(object)),
            _ => DeltaKind::Updated(object),
        };
        self.hand_on(delta).await?;
        Ok(Some(revision))
    }

    /// Returns an error if `object` is new and the store already has more objects than `Limits::objects`.
    fn room_for(&self, object: &ObjectName) -> Result<(), Stop> {
        let limit = self.reflector.requests.limits().objects;
        let source = self.reflector.source;
        if self.reflector.store.is_full(source, object, limit) {
            let what = format!(
                "the cache has more than {limit} objects; to allow more, raise Limits::objects"
            );
            return Err(transport::Error::new(Class::Protocol, what).into());
        }
        Ok(())
    }

    /// Sends the revision of the event in `frame` to the store as a bookmark, and returns the revision.
    ///
    /// Sends nothing and returns `None` if the revision is unreadable or below the reflector's last revision.
    async fn bookmark(&mut self, frame: &Frame) -> Result<Option<ResourceVersion>, Stop> {
        let Some(revision) = decode::revision(frame.object()) else {
            return Ok(None);
        };
        if self.machine.is_below_last(&frame.kind, &revision) {
            self.machine.below_last(&revision, None)?;
            return Ok(None);
        }
        let told = revision.clone();
        self.hand_on(DeltaKind::Bookmark { revision: told }).await?;
        Ok(Some(revision))
    }
}
