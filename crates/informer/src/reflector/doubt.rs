//! How a reflector is told that its store is not what the server has.

use tokio::sync::watch;

use crate::metrics::RelistReason;

/// The end of whoever compares: raises a doubt.
pub(crate) struct Doubt(watch::Sender<Option<RelistReason>>);

/// The reflector's end.
#[derive(Clone, Default)]
pub(crate) struct Trust(Option<watch::Receiver<Option<RelistReason>>>);

impl Doubt {
    pub(crate) fn new() -> (Self, Trust) {
        let (sender, receiver) = watch::channel(None);
        (Self(sender), Trust(Some(receiver)))
    }

    /// Everything is to be listed anew. Kept until the reflector watches, or brings a list, which stands
    /// for the one that it asks for.
    pub(crate) fn raise(&self, reason: RelistReason) {
        self.0.send_replace(Some(reason));
    }
}

impl Trust {
    /// Waits for a doubt; for ever if nobody compares.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn lost(&mut self) -> RelistReason {
        loop {
            let Some(receiver) = &mut self.0 else {
                return std::future::pending().await;
            };
            if receiver.changed().await.is_err() {
                self.0 = None;
            } else if let Some(reason) = *receiver.borrow_and_update() {
                return reason;
            }
        }
    }

    /// Takes the doubt that waits, if any: a list is about to be applied, which is what a doubt requests.
    pub(super) fn restore(&mut self) -> Option<RelistReason> {
        let receiver = self.0.as_mut()?;
        if !receiver.has_changed().unwrap_or_default() {
            return None;
        }
        *receiver.borrow_and_update()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_doubt_waits_for_the_reflector_and_is_void_after_a_list() {
        let (doubt, mut trust) = Doubt::new();
        assert_eq!(trust.lost().now_or_never(), None);
        doubt.raise(RelistReason::Inconsistent);
        assert_eq!(
            trust.lost().now_or_never(),
            Some(RelistReason::Inconsistent)
        );
        assert_eq!(trust.lost().now_or_never(), None, "it is told once");
        doubt.raise(RelistReason::WentBack);
        let restored = trust.restore();
        assert_eq!(restored, Some(RelistReason::WentBack), "a list takes it");
        assert_eq!(trust.restore(), None);
        assert_eq!(trust.lost().now_or_never(), None, "listed since");
        drop(doubt);
        assert_eq!(
            trust.lost().now_or_never(),
            None,
            "nobody compares any more"
        );
    }
}
