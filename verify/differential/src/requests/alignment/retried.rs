//! Counts the requests with which client-go and the library continue after a rejected watch.
//!
//! This module does not decide which intentional difference (divergence) explains these requests. The rules
//! of the parent module decide this.

use super::{
    Pair,
    asked::{Pause, Request, is_away, is_page, is_probe, is_stream, is_watch, revision},
};

impl<'a> Pair<'a> {
    /// Returns the number of client-go's requests and of the library's requests after a rejected watch, and
    /// whether the library's requests include a probe (a LIST with `limit=1`).
    ///
    /// The first count starts at index `i`, and the second count starts at index `j`. Each count ends with
    /// the request that opens a watch or a streaming list.
    ///
    /// Returns `None` if the requests do not follow the same rejected watch, or if one of them is not as
    /// expected, for example its pause or its outcome.
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

    /// Returns a rejected watch and its response, if client-go sent the watch directly before its request
    /// `i`, and the library sent the same watch directly before its request `j`.
    ///
    /// Returns `None` if there is no such watch, or if client-go's request `i` is not a list.
    pub(super) fn begins_again(&self, i: usize, j: usize) -> Option<(&'a str, &'a str)> {
        let (their, our) = self.both(i, j)?;
        let (refused, outcome) = our.before?;
        let lists = is_stream(their.asked) || their.asked.starts_with("list");
        let is_it = their.before == our.before && is_watch(refused) && is_away(outcome) && lists;
        is_it.then_some((refused, outcome))
    }

    /// Returns the number of requests with which the library retries the watch `refused`, and whether they
    /// include a probe (a LIST with `limit=1`). The server has rejected the watch with `outcome`.
    ///
    /// The count starts with the request at index `j` and ends with the watch that succeeds. If a watch fails
    /// because its revision has expired, the count ends with the relist.
    ///
    /// Returns `None` if the library sends any other request, or if the server sends any other response.
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

    /// Returns the number of requests of the relist that begins at the index `at` of [`Pair::ours`].
    ///
    /// A streaming list is one request. Any other relist has one request for each page of the list, and one
    /// for the watch that follows. Returns `None` if no successful relist begins at the index.
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
