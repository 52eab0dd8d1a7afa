//! How an informer's decoder keeps objects, and reports those that turn out not to decode when they are read.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::WeakUnboundedSender;

use crate::{
    controller::Command,
    decode::{self, Decoder},
    logs::Ration,
    object::{DecodeError, Lazy, Opener},
    reflector::{Error, Reporter},
    shared_informer::options::Keeping,
};

/// The decoder that keeps objects as `keeping` says. What turns out not to decode is reported, and to the
/// informer's loop by a command.
pub(super) fn decoder<K>(
    decoder: Decoder<K>,
    keeping: Keeping<K>,
    report: &Reporter,
    commands: WeakUnboundedSender<Command<K>>,
) -> Decoder<K>
where
    K: DeserializeOwned + Send + Sync + 'static,
{
    let decoder = decoder.pruning(keeping.pruning);
    let on_broken = on_broken(report, commands);
    if let Some(options) = keeping.packing {
        let opener = Opener::new(options, decode::open::<K>, Box::new(on_broken));
        return decoder.packing(Some(Arc::new(opener)));
    }
    let lazy = || Arc::new(Lazy::new(decode::open::<K>, Box::new(on_broken)));
    decoder.lazily(keeping.is_lazy.then(lazy))
}

/// Reports an object that turned out not to decode when it was read.
fn on_broken<K: Send + Sync + 'static>(
    report: &Reporter,
    // Not kept alive by objects, which the loop itself has.
    commands: WeakUnboundedSender<Command<K>>,
) -> impl Fn(&DecodeError) + Send + Sync + 'static {
    let (report, ration) = (report.clone(), Mutex::new(Ration::default()));
    move |error| {
        if let (Some(commands), Some(name)) = (commands.upgrade(), error.object_name()) {
            // An informer that has ended changes nothing any more.
            let _ = commands.send(Command::FoundBroken(name.clone()));
        }
        report.skipped(&Error::Decode(error.clone()), &mut ration.lock());
    }
}
