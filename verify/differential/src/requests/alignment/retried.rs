//! Counts the requests with which client-go and the library continue after a rejected watch.

use super::{
    Pair,
    asked::{Pause, Request, is_away, is_page, is_probe, is_stream, is_watch, revision},
};

impl<'a> Pair<'a> {
    /// Counts the requests with which client-go and the library continue after the same rejected watch.
    ///
    /// Returns the number of client-go's requests from index `i`, and the number of the library's requests
    /// from index `j`. Each count ends with the first request that successfully opens a watch or a streaming
    /// list. Also returns whether the library's requests include a probe (a LIST with `limit=1`).
    ///
    /// Returns `None` if there is no such watch, or if a request differs from the expected retries.
    pub(super) fn retried(&self, i: usize, j: usize) -> Option<(usize, usize, bool)> {
        let (refused, outcome) = self.begins_again(i, j)?;
        let (ours, probed) = self.watched_again(j, refused, outcome)?;
        let is_right = |it: &Request<'_>| {
            it.pause != Pause::Strange && (it.outcome == "200" || it.outcome == outcome)
        };
        let opens = |it: &Request<'_>| !it.asked.starts_with("list") && it.outcome == "200";
        let opened = self.theirs[i..].iter().position(opens)?;
        let all_right = self.theirs[i..=i + opened].iter().all(is_right);
        all_right.then_some((opened + 1, ours, probed))
    }

    /// Returns the text of the rejected watch that both reflectors sent last, and the response to the watch.
    ///
    /// client-go's request before index `i` and the library's request before index `j` must be the same
    /// watch, with the same temporary rejection ([`is_away`]). client-go's request `i` must be a list or a
    /// streaming list. Otherwise, returns `None`.
    pub(super) fn begins_again(&self, i: usize, j: usize) -> Option<(&'a str, &'a str)> {
        let (their, our) = self.both(i, j)?;
        let (refused, outcome) = our.before?;
        let lists = is_stream(their.asked) || their.asked.starts_with("list");
        let is_it = their.before == our.before && is_watch(refused) && is_away(outcome) && lists;
        is_it.then_some((refused, outcome))
    }

    /// Counts the library's requests, from index `j`, that retry a rejected watch. Also returns whether these
    /// requests include a probe (a LIST with `limit=1`).
    ///
    /// `refused` is the text of the rejected watch, and `outcome` is the response to the watch. The count
    /// ends with the successful retry, or with the relist if the revision of a retry has expired.
    ///
    /// Returns `None` after any other request or response.
    pub(super) fn watched_again(
        &self,
        j: usize,
        refused: &str,
        outcome: &str,
    ) -> Option<(usize, bool)> {
        let (mut at, mut probed) = (j, false);
        loop {
            let mut pause = Pause::Backoff;
            let probe = self.ours.get(at)?;
            let is_ours = is_probe(probe.asked) && revision(probe.asked) == revision(refused);
            if is_ours && self.owed[at] && (probe.pause, probe.outcome) == (pause, "200") {
                (at, pause, probed) = (at + 1, Pause::None, true);
            }
            let watch = self.ours.get(at)?;
            if watch.asked != refused || watch.pause != pause {
                return None;
            }
            at += 1;
            match watch.outcome {
                "200" => return Some((at - j, probed)),
                "expired" => return Some((at - j + self.relisted(at)?, probed)),
                again if again == outcome => {}
                _ => return None,
            }
        }
    }

    /// Counts the requests of the relist that begins at index `at` of [`Pair::ours`], including the watch.
    ///
    /// A streaming list is one request, because it continues as a watch. Any other relist has one request for
    /// each page, and one for the watch. Returns `None` if no successful relist begins at the index.
    fn relisted(&self, at: usize) -> Option<usize> {
        let list = self.ours.get(at)?;
        let is_due = list.is_free || list.pause == Pause::Backoff;
        if !is_due || list.outcome != "200" {
            return None;
        }
        if is_stream(list.asked) {
            return Some(1);
        }
        let follows = |it: &&Request<'_>| it.pause == Pause::None && it.outcome == "200";
        let pages = self.ours[at + 1..].iter().take_while(follows);
        let pages = pages.take_while(|it| is_page(it.asked)).count();
        let watch = self.ours.get(at + 1 + pages).filter(follows)?;
        (list.asked.starts_with("list") && is_watch(watch.asked)).then_some(pages + 2)
    }
}
