//! How an informer's decoder keeps objects, and reports those that turn out not to decode when they are read.

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

/// The decoder that keeps objects as `keeping` says. What turns out not to decode is reported, and to the
/// informer's loop by a command.
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

/// Reports an object that turned out not to decode when it was read.
fn on_broken<K: Send + Sync + 'static>(
    report: &Reporter,
    // Not kept alive by objects, which the loop itself has.
    commands: WeakUnboundedSender<Command<K>>,
) -> impl Fn(&DecodeError) + Send + Sync + 'static {
    let (report, limiter) = (report.clone(), Mutex::new(LogLimiter::default()));
    move |error| {
        if let (Some(commands), Some(name)) = (commands.upgrade(), error.object_name()) {
            // An informer that has ended changes nothing any more.
            let _ = commands.send(Command::FoundBroken(name.clone()));
        }
        report.skipped(&Error::Decode(error.clone()), &mut limiter.lock());
    }
}
