//! A streaming list: what its events add up to, until the end bookmark makes one change of it.

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    super::{Error, ReflectorStore, Reporter, list_steps::ListSteps, machine::Action},
    Again, Piece, Running, Stop,
    watch::Opened,
};
use crate::{
    beside::{OFFLOADED_MIN, offload},
    decode::{self, Decoded},
    object::{Object, ObjectName, ResourceVersion},
    status::Activity,
    transport::{self, Class, Frame, FrameKind, ListBudget},
};

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    pub(super) fn begin_initial_events(&mut self) {
        self.initial.clear();
        self.unchanged = None;
        self.budget = ListBudget::begin(self.reflector.requests.limits());
        self.skipped = 0;
        self.steps = Some(ListSteps::begin());
        self.meter.list_begins();
    }

    /// Takes one event of a streaming list. Nothing of it reaches the store before the end.
    pub(super) async fn initial_event(
        &mut self,
        piece: Piece<K>,
        opened: &Opened,
    ) -> Result<(), Stop> {
        let Piece { frame, decoded, .. } = piece;
        let Frame { kind, bytes } = &frame;
        self.budget.more_bytes(bytes.len())?;
        let mut is_new = false;
        let revision = match kind {
            FrameKind::Error => return Err(transport::Error::from_status_body(500, bytes).into()),
            FrameKind::Bookmark => {
                let revision = decode::revision(bytes);
                if let Some(revision) = &revision
                    && decode::ends_initial_events(bytes)
                {
                    return self.complete(revision.clone(), opened).await;
                }
                revision
            }
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                match self.staged_object(&frame, decoded)? {
                    Some(object) => {
                        let revision = object.revision().clone();
                        is_new = self.stage(kind, object);
                        self.budget.objects_in_all(self.initial.len())?;
                        Some(revision)
                    }
                    None => decode::revision(bytes),
                }
            }
            FrameKind::Unknown(unknown) => {
                self.report(&Error::UnknownEvent(unknown.clone()));
                let what = "the streaming list told something of a type that is not known";
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            FrameKind::Item => None,
        };
        let now = Instant::now();
        self.machine
            .initial_event(kind, revision.as_ref(), is_new, now);
        Ok(())
    }

    fn staged_object(
        &mut self,
        Frame { kind, bytes }: &Frame,
        decoded: Option<Decoded<K>>,
    ) -> Result<Option<Object<K>>, Stop> {
        let Some(decoded) = decoded else {
            return Ok(None);
        };
        // One that only begins to be there is left out, as of a list.
        let is_doubtful = *kind != FrameKind::Added && decoded.is_of_nobody(bytes);
        let object = self.usable(decoded);
        if is_doubtful {
            let what = "the streaming list told of an object that can't be read";
            return Err(transport::Error::new(Class::Protocol, what).into());
        }
        Ok(object)
    }

    /// Whether the object was not there.
    fn stage(&mut self, kind: &FrameKind, object: Object<K>) -> bool {
        let name: ObjectName = object.object_name().clone();
        if *kind == FrameKind::Deleted {
            self.initial.remove(&name);
            return false;
        }
        self.initial.insert(name, object).is_none()
    }

    /// Hands everything on as of the end's revision; the stream goes on as the watch.
    async fn complete(&mut self, revision: ResourceVersion, opened: &Opened) -> Result<(), Stop> {
        self.machine.end_in_order(&revision)?;
        if let Some(steps) = &mut self.steps {
            steps.page(opened.asked, Some(opened.answered));
        }
        if self.initial.is_empty() && self.has_objects() {
            return Err(Stop::Again(Again::Unconfirmed));
        }
        self.tend_packing(false).await;
        let is_long = self.initial.len() >= OFFLOADED_MIN;
        let initial = std::mem::take(&mut self.initial);
        let in_order = move || initial.into_values().collect();
        let objects = if is_long {
            offload(in_order).await
        } else {
            in_order()
        };
        self.hand_on_all(objects, revision.clone()).await?;
        self.pieces.forget_known();
        self.machine.streamed(revision, Instant::now());
        self.activity(Activity::Watching);
        Ok(())
    }

    /// Whether the store has an object of this source.
    fn has_objects(&self) -> bool {
        // No object has the empty name, so one more than none is any.
        let nothing = ObjectName::cluster("");
        let source = self.reflector.source;
        self.reflector.store.is_full(source, &nothing, 0)
    }

    pub(super) fn streaming(&self) {
        let objects = self.initial.len();
        self.activity(Activity::Streaming { objects });
    }

    /// Whatever a streaming list has brought that did not come to its end is void.
    pub(super) fn end_initial_events(&mut self, unfinished: bool, next: &Action) {
        if !unfinished {
            return;
        }
        if !matches!(next, Action::List { .. }) {
            self.meter.list_ended(self.initial.len(), false);
        }
        self.initial.clear();
        self.steps = None;
        if let Action::List { .. } = next {
            // The list is part of the same attempt.
            self.failures = self.failures.saturating_sub(1);
            let Reporter { name, expects, .. } = &self.reflector.report;
            if self.failures == 0 {
                tracing::info!(reflector = %name, %expects, "listing, as the streaming list has failed");
            } else {
                tracing::debug!(reflector = %name, %expects, "listing, as the streaming list has failed");
            }
        }
    }
}
