//! Checks the requests that client-go's reflector and the library's reflector send after an operation. All
//! differences between the two lists of requests must be intentional.
//!
//! An intentional difference is called a divergence. At each difference, a rule names the divergences, and
//! determines which requests correspond to each other. The comparison fails if no rule applies.

mod asked;
mod retried;

use crate::component::Moment;

use self::asked::{
    LOSE, Pause, Request, Side, expired, is_page, is_probe, is_stream, is_watch, lags_behind, owed,
    requests, revision, split,
};

/// Divergence: after an expired watch or a closed streaming list, the library sends the first list without a
/// pause; client-go pauses first.
const AT_ONCE: &str = "the_first_relist_is_at_once";
/// Divergence: the library backs off after a reset connection; client-go retries after 1 s.
const RESET: &str = "a_reset_connection_is_backed_off_from";
/// Divergence: the library backs off after a failed streaming list; client-go repeats the list immediately.
const STREAM_FAILED: &str = "a_streaming_list_in_vain_is_backed_off_from";
/// Divergence: the library sends a probe (a LIST with `limit=1`) before it resumes a lost watch; client-go
/// sends none.
const PROBE: &str = "a_lost_connection_is_probed";
/// Divergence: after a temporary rejection of a watch, the library retries the watch; client-go lists.
const KEPT: &str = "a_watch_refused_for_now_is_requested_again";
/// Divergence: after a revision expired, the library lists the newest state; client-go lists at a revision
/// that may also have expired.
const EXPIRED: &str = "an_expiry_that_may_come_again_asks_for_the_newest";
/// Divergence: the library lists the newest state in pages; client-go uses no pages.
const PAGED: &str = "the_newest_state_is_listed_in_pages";
/// Divergence: after a streaming list is rejected with 422, the library requests no streaming list for one
/// hour; client-go requests one for the next relist.
const NOT_ASKED: &str = "a_refused_streaming_list_is_not_asked_for_within_the_hour";
/// Divergence: the library gives up a streaming list after 10 s without data; client-go keeps waiting.
const OVERDUE: &str = "a_streaming_list_without_an_end_is_given_up";
/// Divergence: after three incomplete streaming lists, the library sends a plain list, unlike client-go.
const THREE: &str = "a_third_streaming_list_in_vain_is_given_up";
/// Divergence: if a streaming list closes after its end bookmark, the library watches; client-go lists again.
const COMPLETE: &str = "a_streaming_list_that_closes_behind_its_end_is_watched_on";
/// Divergence: after an empty streaming list, the library checks with a plain list that no objects exist;
/// client-go sends no such list.
const CONFIRMED: &str = "an_empty_streaming_list_is_confirmed";
/// Divergence: when an object can't be decoded, the library continues the watch; client-go lists again.
const BROKEN: &str = "an_object_that_can_not_be_decoded_is_kept";

/// The requests that client-go and the library sent after one operation.
struct Pair<'a> {
    verb: &'a str,
    theirs: Vec<Request<'a>>,
    ours: Vec<Request<'a>>,
    /// The revisions that client-go requested in lists of earlier operations. These revisions may have
    /// expired.
    expired: Vec<String>,
    /// For each request in `ours`, whether a probe (a LIST with `limit=1`) is permitted at this position.
    owed: Vec<bool>,
    /// Whether the library's store is empty after the operation.
    is_empty: bool,
    /// Whether a list may have a newer revision than the last watch event.
    ///
    /// True if the last change was to a resource that the reflector does not watch.
    lags: bool,
}

/// Result of a [`Rule`]: the number of matched requests of client-go, the number of matched requests of the
/// library, and the names of the divergences between these requests.
type Matched = (usize, usize, Vec<&'static str>);

/// Matches the next requests of client-go with the next requests of the library.
///
/// The numbers are the indexes of these requests in [`Pair::theirs`] and [`Pair::ours`]. Returns `None` if
/// the rule does not apply.
type Rule<'a> = fn(&Pair<'a>, usize, usize) -> Option<Matched>;

/// The divergences that explain why the requests after one operation differ.
#[derive(Default)]
pub(super) struct Alignment {
    pub(super) names: Vec<&'static str>,
    /// Whether the stores may differ after the operation. Later operations are then not compared.
    pub(super) parts: bool,
}

impl Alignment {
    fn parting(names: Vec<&'static str>) -> Self {
        Self { names, parts: true }
    }
}

/// Returns the divergences that explain how the two lists of requests after an operation differ.
///
/// Returns `None` if a difference between the requests or between the stores is unexplained.
pub(super) fn align(moment: &Moment<'_>) -> Option<Alignment> {
    let (theirs, their_store) = split(moment.their()?.text()?)?;
    let (ours, our_store) = split(moment.our().text()?)?;
    let pair = Pair {
        verb: moment.verb(),
        theirs: requests(&theirs, Side::Theirs, moment.verb()),
        ours: requests(&ours, Side::Ours, moment.verb()),
        expired: expired(moment),
        owed: owed(moment),
        is_empty: our_store == "store []",
        lags: lags_behind(moment),
    };
    let alignment = pair.align(0, 0, false)?;
    (alignment.parts || their_store == our_store).then_some(alignment)
}

/// Returns the divergences that explain different pauses before two requests.
///
/// Returns an empty list for equal pauses, and `None` if no divergence explains the difference.
fn paused(their: &Request<'_>, our: &Request<'_>) -> Option<Vec<&'static str>> {
    let last = our.before.map_or("", |(_, outcome)| outcome);
    let last_asked = our.before.map_or("", |(asked, _)| asked);
    match (their.pause, our.pause) {
        (Pause::Strange, _) | (_, Pause::Strange) => None,
        (their, our) if their == our => Some(Vec::new()),
        (Pause::Backoff, Pause::None) if our.is_free => Some(vec![AT_ONCE]),
        (Pause::Repeat, Pause::Backoff) if last == "reset" => Some(vec![RESET]),
        (Pause::None, Pause::Backoff)
            if is_stream(last_asked) && ["410", "504", "closed"].contains(&last) =>
        {
            Some(vec![STREAM_FAILED])
        }
        _ => None,
    }
}

impl<'a> Pair<'a> {
    /// Returns the divergences between the requests in `theirs` from index `i` and the requests in `ours`
    /// from index `j`. Returns `None` if a difference is unexplained.
    ///
    /// `newer` is whether the divergence [`EXPIRED`] occurred before. The library may then have listed a
    /// newer state than client-go.
    fn align(&self, i: usize, j: usize, newer: bool) -> Option<Alignment> {
        let rules: [Rule<'a>; 12] = [
            Self::same,
            Self::kept,
            Self::probed,
            Self::made_up_for,
            Self::newest,
            Self::skipped,
            Self::not_asked,
            Self::overdue,
            Self::given_up,
            Self::complete,
            Self::confirmed,
            Self::broken,
        ];
        if newer && self.is_behind(i, j) {
            return Some(Alignment::parting(Vec::new()));
        }
        if let Some(names) = self.left(i, j).or_else(|| self.kept_behind(i, j)) {
            return Some(Alignment::parting(names));
        }
        if i == self.theirs.len() && j == self.ours.len() {
            return Some(Alignment::default());
        }
        let matches = rules.iter().filter_map(|rule| rule(self, i, j));
        let mut alignments = matches.filter_map(|(theirs, ours, names)| {
            let newer = newer || names.contains(&EXPIRED);
            let mut rest = self.align(i + theirs, j + ours, newer)?;
            rest.names.extend(names);
            Some(rest)
        });
        alignments.next()
    }

    fn both(&self, i: usize, j: usize) -> Option<(&Request<'a>, &Request<'a>)> {
        Some((self.theirs.get(i)?, self.ours.get(j)?))
    }

    fn same(&self, i: usize, j: usize) -> Option<Matched> {
        let (their, our) = self.both(i, j)?;
        if their.turn != our.turn || their.asked != our.asked || their.outcome != our.outcome {
            return None;
        }
        Some((1, 1, paused(their, our)?))
    }

    /// Matches client-go's watch `i` with two requests of the library: the probe `j` (a LIST with `limit=1`),
    /// and the watch that follows.
    ///
    /// If the connections for `i` and `j` were both refused, the library sends no watch. Only the probe then
    /// matches client-go's watch.
    fn probed(&self, i: usize, j: usize) -> Option<Matched> {
        let (their, our) = self.both(i, j)?;
        let at = revision(our.asked);
        let watches = is_watch(their.asked);
        if !is_probe(our.asked) || !watches || revision(their.asked) != at {
            return None;
        }
        let paused = if our.before.is_none() && LOSE.contains(&self.verb) {
            let as_promised = (their.pause, our.pause) == (Pause::None, Pause::Backoff);
            as_promised.then(Vec::new)?
        } else {
            paused(their, our)?
        };
        let names = [vec![PROBE], paused].concat();
        self.owed[j].then_some(())?;
        // No watch follows a probe whose connection was refused.
        if our.outcome == "refused" {
            return (their.outcome == our.outcome).then_some((1, 1, names));
        }
        let watch = self.ours.get(j + 1)?;
        let waits = our.outcome == "reset" || our.outcome.starts_with("429");
        let goes_on = waits != (watch.pause == Pause::None) && watch.asked == their.asked;
        (goes_on && watch.outcome == their.outcome).then_some((1, 2, names))
    }

    /// Matches the library's request `j` with no request of client-go. The request must be a successful probe
    /// (a LIST with `limit=1`) during an open watch.
    fn made_up_for(&self, _: usize, j: usize) -> Option<Matched> {
        let our = self.ours.get(j)?;
        let is_made_up_for = our.pause == Pause::Minute && our.outcome == "200" && self.owed[j];
        is_made_up_for.then(|| (0, 1, vec![PROBE]))
    }

    /// Returns the divergences if client-go sends a watch, but the library sends a probe (a LIST with
    /// `limit=1`) that fails, and then lists the newest state.
    fn left(&self, i: usize, j: usize) -> Option<Vec<&'static str>> {
        let (their, our) = self.both(i, j)?;
        let next = self.ours.get(j + 1)?;
        let is_told = is_probe(our.asked) && our.outcome == "504" && self.owed[j];
        let asks_newest = revision(next.asked).is_empty() && next.pause == Pause::None;
        let watches = is_watch(their.asked);
        if !is_told || !asks_newest || !watches || revision(their.asked) != revision(our.asked) {
            return None;
        }
        Some([vec![PROBE], paused(their, our)?].concat())
    }

    fn kept(&self, i: usize, j: usize) -> Option<Matched> {
        let (theirs, ours, probed) = self.retried(i, j)?;
        let names = if probed {
            vec![KEPT, PROBE]
        } else {
            vec![KEPT]
        };
        Some((theirs, ours, names))
    }

    /// Checks whether, after a rejected watch, client-go sent a list and the library retried the watch.
    ///
    /// Returns the names of the divergences if one of the two stores may then contain a newer state. Returns
    /// `None` otherwise. `i` and `j` are the indexes of the first requests after the watch.
    fn kept_behind(&self, i: usize, j: usize) -> Option<Vec<&'static str>> {
        let Some((theirs, ours, _)) = self.retried(i, j) else {
            let asked_newest = |it: &Request<'_>| {
                it.asked.starts_with("list") && revision(it.asked).is_empty() && !is_page(it.asked)
            };
            let expires = self.theirs.last()?.outcome == "expired";
            let is_newest = self.ours[j..].iter().any(asked_newest);
            let (refused, outcome) = self.begins_again(i, j)?;
            self.watched_again(j, refused, outcome)?;
            return (expires && is_newest).then(|| vec![KEPT, EXPIRED]);
        };
        let (their, our) = (&self.theirs[i + theirs - 1], &self.ours[j + ours - 1]);
        let is_newer = match (is_stream(their.asked), is_stream(our.asked)) {
            (true, true) => false,
            (false, false) => revision(their.asked) != revision(our.asked),
            _ => self.lags,
        };
        is_newer.then(|| vec![KEPT])
    }

    fn newest(&self, i: usize, j: usize) -> Option<Matched> {
        let (their, our) = self.both(i, j)?;
        if their.turn != our.turn || their.outcome != our.outcome {
            return None;
        }
        let mut names = paused(their, our)?;
        if their.asked == "list" && our.asked == "list limit=500" {
            names.push(PAGED);
            return Some((1, 1, names));
        }
        self.expires_again(their, our).then(|| {
            names.push(EXPIRED);
            (1, 1, names)
        })
    }

    /// Matches two lists of client-go with one list of the library. client-go's first list fails with 410.
    fn skipped(&self, i: usize, j: usize) -> Option<Matched> {
        let (their, our) = self.both(i, j)?;
        let again = self.theirs.get(i + 1)?;
        let is_newest =
            again.asked == our.asked || again.asked == "list" && our.asked == "list limit=500";
        let is_again = (again.pause, again.outcome) == (Pause::None, our.outcome);
        if their.outcome != "410" || !is_newest || !is_again || !self.expires_again(their, our) {
            return None;
        }
        let names = [vec![EXPIRED], paused(their, our)?].concat();
        Some((2, 1, names))
    }

    fn expires_again(&self, their: &Request<'_>, our: &Request<'_>) -> bool {
        let at = revision(their.asked);
        let newest = their.asked.replace(&format!(" resourceVersion={at}"), "");
        let is_newest = newest == our.asked || newest == "list" && our.asked == "list limit=500";
        let in_pages = their.is_stuck && their.asked.contains(" limit=");
        is_newest && !at.is_empty() && (in_pages || self.has_expired(at, their))
    }

    /// Returns whether the revision `at` may have expired before client-go sends the request `now`.
    ///
    /// True if client-go has requested this revision in a list before, also in an earlier operation.
    fn has_expired(&self, at: &str, now: &Request<'_>) -> bool {
        let before = self
            .theirs
            .iter()
            .take_while(|request| !std::ptr::eq(*request, now));
        let mut lists = before.filter(|it| it.asked.starts_with("list ") || is_stream(it.asked));
        self.expired.iter().any(|expired| expired == at)
            || lists.any(|request| revision(request.asked) == at)
    }

    /// Returns whether client-go's next watch starts at an older revision than the library's next watch,
    /// because the library has listed the newest state.
    ///
    /// The stores are then not comparable.
    fn is_behind(&self, i: usize, j: usize) -> bool {
        let no_page = |request: &&Request<'_>| !is_page(request.asked);
        let their = self.theirs[i..].iter().find(no_page);
        let our = self.ours[j..].iter().find(no_page);
        let list = self.ours[..j].iter().rev().find(no_page);
        let (Some(their), Some(our), Some(list)) = (their, our, list) else {
            return false;
        };
        let asked_newest = list.asked.starts_with("list") && revision(list.asked).is_empty();
        let at = revision(their.asked);
        let number = |revision: &str| revision.parse::<u64>().ok();
        let is_older = number(at)
            .zip(number(revision(our.asked)))
            .is_some_and(|(at, new)| at < new);
        asked_newest && is_watch(their.asked) && is_watch(our.asked) && is_older
    }

    /// Returns the number of the library's requests that correspond to client-go's streaming list.
    ///
    /// The streaming list has index `i` in [`Pair::theirs`]. The library's requests start at index `j` in
    /// [`Pair::ours`]: all pages of a list, and then a watch. The pause before the first page must be
    /// `pause`. Returns `None` if the requests do not match this pattern.
    fn listed(&self, i: usize, j: usize, pause: Pause) -> Option<usize> {
        let their = self.theirs.get(i)?;
        let list = self.ours.get(j)?;
        let at = revision(their.asked);
        let is_list = list.asked.starts_with("list") && list.outcome == "200";
        let is_at = revision(list.asked) == at
            || revision(list.asked).is_empty() && self.has_expired(at, their)
            || at.is_empty() && revision(list.asked) == "0";
        if list.pause != pause || !is_list || !is_at || !is_stream(their.asked) {
            return None;
        }
        let follows = |request: &&Request<'_>| request.pause == Pause::None;
        let rest = self.ours[j + 1..].iter().take_while(follows);
        let pages = rest.clone().take_while(|request| is_page(request.asked));
        let pages = pages.count();
        let watch = rest.clone().nth(pages)?;
        (is_watch(watch.asked) && watch.outcome == "200").then_some(pages + 2)
    }

    fn not_asked(&self, i: usize, j: usize) -> Option<Matched> {
        let their = self.theirs.get(i)?;
        if self.verb != "unsupported" || their.turn != 1 || their.outcome != "200" {
            return None;
        }
        let (their, our) = self.both(i, j)?;
        let names = [vec![NOT_ASKED], paused(their, our)?].concat();
        Some((1, self.listed(i, j, our.pause)?, names))
    }

    fn overdue(&self, i: usize, j: usize) -> Option<Matched> {
        if self.verb != "end_never" {
            return None;
        }
        let streamed = self.theirs.get(i.checked_sub(1)?)?;
        match (self.theirs.get(i), self.ours.get(j)) {
            (_, Some(our)) if our.pause == Pause::InitialEvents && streamed.turn == our.turn => {
                Some((
                    0,
                    self.listed(i - 1, j, Pause::InitialEvents)?,
                    vec![OVERDUE],
                ))
            }
            (Some(their), None) if their.turn == 1 && their.pause == Pause::None => {
                let again = their.asked == streamed.asked && their.outcome == "200";
                again.then_some((1, 0, vec![OVERDUE]))
            }
            _ => None,
        }
    }

    fn given_up(&self, i: usize, j: usize) -> Option<Matched> {
        let (their, our) = self.both(i, j)?;
        let vain = |request: &Request<'_>| {
            is_stream(request.asked) && ["closed", "410", "504", "reset"].contains(&request.outcome)
        };
        let three = self.ours.get(j.checked_sub(3)?..j)?.iter().all(vain);
        let repeats = [Pause::None, Pause::Repeat].contains(&their.pause);
        if !three || !repeats || their.outcome != "200" || our.pause != Pause::None {
            return None;
        }
        Some((1, self.listed(i, j, Pause::None)?, vec![THREE]))
    }

    fn complete(&self, i: usize, j: usize) -> Option<Matched> {
        let (_, outcome) = self.ours.get(j)?.before?;
        let probe = self.ours.get(j)?;
        let is_probed = is_probe(probe.asked) && self.owed[j] && probe.outcome == "200";
        let (probes, names) = if is_probed {
            (1, vec![COMPLETE, PROBE])
        } else {
            (0, vec![COMPLETE])
        };
        let our = self.ours.get(j + probes)?;
        let waits = (probe.pause, our.pause) != (Pause::None, Pause::None);
        if outcome != "complete and closed" || !is_watch(our.asked) || waits {
            return None;
        }
        let again = |request: &&Request<'_>| {
            is_stream(request.asked)
                && request.pause == Pause::Backoff
                && ["complete and closed", "200"].contains(&request.outcome)
        };
        let streams = self.theirs[i..].iter().take_while(again).count();
        (streams > 0 && our.outcome == "200").then_some((streams, 1 + probes, names))
    }

    fn confirmed(&self, _: usize, j: usize) -> Option<Matched> {
        let (list, watch) = (self.ours.get(j)?, self.ours.get(j + 1)?);
        let (streamed, outcome) = list.before?;
        let follows = list.pause == Pause::None && watch.pause == Pause::None;
        let is_it = is_stream(streamed) && outcome == "200" && list.asked == "list limit=500";
        let well = list.outcome == "200" && watch.outcome == "200" && is_watch(watch.asked);
        (self.is_empty && follows && is_it && well).then(|| (0, 2, vec![CONFIRMED]))
    }

    fn broken(&self, i: usize, j: usize) -> Option<Matched> {
        if self.verb != "spoil" || j < self.ours.len() || i > 0 {
            return None;
        }
        let (first, rest) = self.theirs.split_first()?;
        let relists = first.pause == Pause::Backoff && !is_watch(first.asked);
        let follows = |request: &Request<'_>| {
            request.pause == Pause::None && (is_page(request.asked) || is_watch(request.asked))
        };
        let well = self.theirs.iter().all(|request| request.outcome == "200");
        (relists && well && rest.iter().all(follows)).then_some((
            self.theirs.len(),
            0,
            vec![BROKEN],
        ))
    }
}

#[cfg(test)]
mod tests;
