//! Configures an informer's decoder: the form in which the cache keeps objects, and the fields to remove.
//!
//! An object is kept decoded, as received bytes (lazy), or compressed (packed). A lazy or packed object can
//! fail to decode when the program reads it from the cache. The decoder then reports the error.

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::WeakUnboundedSender;

use crate::{
    controller::Command,
    decode::{self, Decoder},
    logs::LogLimiter,
    object::{DecodeError, Form},
    reflector::{Error, Reporter},
    shared_informer::options::Keeping,
};

pub(super) fn decoder<K>(
    decoder: Decoder<K>,
    keeping: &Keeping<K>,
    report: &Reporter,
    commands: WeakUnboundedSender<Command<K>>,
) -> Decoder<K>
where
    K: DeserializeOwned + Send + Sync + 'static,
{
    let decoder = decoder.pruning(keeping.pruning.clone());
    let on_broken = Box::new(on_broken(report, commands));
    let form = Form::new(keeping.form, decode::open::<K>, on_broken);
    decoder.keeping(form)
}

/// Returns the callback for decode failures, which reports the error and marks the cached object as broken.
fn on_broken<K: Send + Sync + 'static>(
    report: &Reporter,
    // Weak, because the loop owns the objects, and the objects own this callback.
    commands: WeakUnboundedSender<Command<K>>,
) -> impl Fn(&DecodeError) + Send + Sync + 'static {
    let (report, limiter) = (report.clone(), Mutex::new(LogLimiter::default()));
    move |error| {
        if let (Some(commands), Some(name)) = (commands.upgrade(), error.object_name()) {
            // An informer that has ended has no loop to update.
            let _ = commands.send(Command::FoundBroken(name.clone()));
        }
        report.skipped(&Error::Decode(error.clone()), &mut limiter.lock());
    }
}
