//! The test cases for a restored server. Each case is a response or an event that can reveal the restore.

use std::time::Duration;

use kube_informer::{InitialList, transport::Class};

use super::{EXPIRED, bookmark, item, streamed};
use crate::script::{Answer, Then, body, error_event, event, hangs, list};

/// A response or an event that proves or suggests that the server was restored.
pub(super) struct Notice {
    pub(super) what: &'static str,
    /// The events of the first watch, which starts at revision 5, and how the watch ends.
    pub(super) watch: (String, Then),
    /// Returns the responses between the first watch and the list that the informer applies.
    pub(super) answers: fn() -> Vec<Answer>,
    /// Possible revisions of the list that the informer applies. A test run uses one of these revisions.
    pub(super) revisions: &'static [u64],
    pub(super) verdict: Verdict,
}

/// Whether the server was certainly or possibly restored.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    WentBack,
    Suspected,
}

const BACK_OR_ON: &[u64] = &[4, 5, 9];

pub(super) fn notices(way: InitialList) -> Vec<Notice> {
    use Verdict::{Suspected, WentBack};

    let notice = |verdict, what, watch, answers| Notice {
        what,
        watch,
        answers,
        revisions: BACK_OR_ON,
        verdict,
    };
    // A server that lags behind responds the same way, so only a lower revision in the next list proves a
    // restore.
    let refused = |what, watch| Notice {
        revisions: &[4],
        ..notice(WentBack, what, watch, || {
            vec![Answer::Refuse(Class::TooLargeResourceVersion)]
        })
    };
    let silent = || (String::new(), Then::Hangs);
    let cut = || (String::new(), Then::Breaks(Class::Connection));
    let expired = || (error_event(EXPIRED), Then::Ends);
    let older = || (event("DELETED", &item("z", 3, "old")), Then::Hangs);
    let older_bookmark = || (bookmark(3, "null"), Then::Hangs);
    let older_probe = || vec![body(list(3, "", &[]))];
    // Delayed, so that the cache has the object.
    let second = Duration::from_secs(1);
    let contradicts = Then::Goes(second, |_| event("MODIFIED", &item("b", 1, "old")));
    let mut notices = vec![
        notice(
            WentBack,
            "an event older than its object",
            (String::new(), contradicts),
            Vec::new,
        ),
        // The probe proves it.
        notice(WentBack, "an older event", older(), older_probe),
        notice(WentBack, "an older bookmark", older_bookmark(), older_probe),
        notice(WentBack, "an older probe", cut(), older_probe),
        refused("an older event, refused", older()),
        refused("an older bookmark, refused", older_bookmark()),
        refused("a probe that is refused", cut()),
        refused("a list that is refused", expired()),
        notice(Suspected, "a difference", silent(), || {
            vec![body(list(
                5,
                "",
                &[item("a", 1, "green"), item("b", 3, "red")],
            ))]
        }),
        notice(Suspected, "a comparison that is refused", silent(), || {
            vec![Answer::Refuse(Class::TooLargeResourceVersion)]
        }),
    ];
    notices.push(if way == InitialList::Streaming {
        notice(WentBack, "an older end", expired(), || {
            vec![hangs(streamed(4, &[item("a", 1, "green")]))]
        })
    } else {
        Notice {
            revisions: &[4],
            ..notice(WentBack, "an older list", expired(), Vec::new)
        }
    });
    notices
}
