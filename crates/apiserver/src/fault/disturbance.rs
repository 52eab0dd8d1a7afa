//! Computes the effects of faults on one response body. The input is the chunks of the original body. The
//! output is a sequence of steps that send, delay or end the changed body.
//!
//! Guarantees:
//! - The module does not wait. The owner of the body executes the steps, such as [`Step::Pause`].
//! - The same chunks with the same seed result in the same steps.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::edit::{Edit, Framing, frame_length};
use super::rule::{After, Ending, Fault, Moment, Split, Which};

/// Maximum size in bytes of a chunk of a randomly split body.
const RANDOM_CHUNK_MAX: u64 = 64;

/// An action that the owner of a response body executes next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Bytes(Bytes),
    Pause(Duration),
    /// Ends the current chunk and flushes it to the connection.
    Flush,
    End(Ending),
    /// Records in the request log that the fault with this name has taken effect.
    Hit(Arc<str>),
}

/// A fault that applies to one response body.
pub(crate) struct Laid {
    pub(super) fault: Fault,
    /// Name by which the request log refers to the fault.
    name: Arc<str>,
    rng: fastrand::Rng,
    /// Whether the request log already records that the fault has affected this body.
    told: bool,
}

/// State of the faults on one response body.
pub(super) struct Disturbance {
    laid: Vec<Laid>,
    framing: Framing,
    /// Whether a fault applies to single events, so the body is split into events.
    by_events: bool,
    started: bool,
    /// Received bytes of an event that is not complete yet.
    line: Vec<u8>,
    /// Number of events received so far.
    events: u64,
    /// Number of bytes sent so far.
    bytes: u64,
    /// Byte offset in the sent body at which the next chunk of a randomly split body ends. The value is 0
    /// until an offset is selected.
    random_border: u64,
    /// An event that is held back until after the next event, because a fault swaps the two.
    overtaken: Option<Bytes>,
}

// === impl Laid ===

impl Laid {
    pub(super) fn new(fault: &Fault, rng: fastrand::Rng) -> Laid {
        Laid {
            fault: fault.clone(),
            name: fault.to_string().into(),
            rng,
            told: false,
        }
    }

    /// Adds a [`Step::Hit`], unless this fault already has one.
    fn hit(&mut self, steps: &mut VecDeque<Step>) {
        if !std::mem::replace(&mut self.told, true) {
            steps.push_back(Step::Hit(Arc::clone(&self.name)));
        }
    }
}

// === impl Disturbance ===

impl Disturbance {
    /// Creates the state of one response body to which the faults `laid` apply.
    ///
    /// If a fault takes effect before the first byte of the body, such as `cut after 0 bytes`, adds the
    /// [`Step`]s of the fault to `steps`.
    pub(super) fn new(
        laid: Vec<Laid>,
        framing: Framing,
        steps: &mut VecDeque<Step>,
    ) -> Disturbance {
        let by_events = laid.iter().any(|laid| laid.fault.needs_events());
        let mut disturbance = Disturbance {
            laid,
            framing,
            by_events,
            started: false,
            line: Vec::new(),
            events: 0,
            bytes: 0,
            random_border: 0,
            overtaken: None,
        };
        disturbance.behind_events(steps);
        disturbance.behind_bytes(steps);
        disturbance
    }

    /// Returns whether the body has no faults.
    pub(super) fn is_idle(&self) -> bool {
        self.laid.is_empty()
    }

    /// Adds the steps for the received `chunk` to `steps`.
    pub(super) fn feed(&mut self, chunk: Bytes, steps: &mut VecDeque<Step>) {
        if !std::mem::replace(&mut self.started, true) {
            self.pause(Moment::FirstByte, steps);
        }
        if !self.by_events {
            return self.send(chunk, steps);
        }
        match self.framing {
            Framing::Lines => {
                for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                    self.line.extend_from_slice(piece);
                    if piece.ends_with(b"\n") {
                        let line = Bytes::from(std::mem::take(&mut self.line));
                        self.event(&line, steps);
                    }
                }
            }
            Framing::Lengths => {
                self.line.extend_from_slice(&chunk);
                while let Some(length) = frame_length(&self.line) {
                    let event: Vec<u8> = self.line.drain(..length).collect();
                    self.event(&event.into(), steps);
                }
            }
            Framing::Whole => self.line.extend_from_slice(&chunk),
        }
    }

    /// Adds the steps for the end of the received body to `steps`.
    pub(super) fn finish(&mut self, steps: &mut VecDeque<Step>) {
        let line = std::mem::take(&mut self.line);
        if self.framing == Framing::Whole && self.by_events {
            self.event(&line.into(), steps);
            return;
        }
        for kept in [line.into(), self.overtaken.take().unwrap_or_default()] {
            self.send(kept, steps);
        }
    }

    /// Removes all faults and the steps that would pause, flush or end the body.
    ///
    /// Adds steps that send the data which the faults have held back.
    pub(super) fn release(&mut self, steps: &mut VecDeque<Step>) {
        self.laid.clear();
        self.by_events = false;
        steps.retain(|step| matches!(step, Step::Bytes(_) | Step::Hit(_)));
        self.finish(steps);
    }

    fn event(&mut self, line: &Bytes, steps: &mut VecDeque<Step>) {
        self.events += 1;
        let overtaken = self.overtaken.take();
        let mut lines = vec![line.clone()];
        let mut swapped = false;
        for laid in &mut self.laid {
            let Fault::Edit(edit, which) = laid.fault else {
                continue;
            };
            // Only one line at a time can be held back.
            let possible = edit != Edit::Swap || (overtaken.is_none() && !swapped);
            if possible && picks(which, self.events, self.framing, line, &mut laid.rng) {
                swapped |= edit == Edit::Swap;
                edit.apply(self.framing, &mut lines);
                laid.hit(steps);
            }
        }
        if swapped {
            self.overtaken = Some(lines.concat().into());
            lines.clear();
        }
        lines.extend(overtaken);
        if !lines.is_empty() {
            self.pause(Moment::EachEvent, steps);
        }
        for line in lines {
            self.send(line, steps);
        }
        self.behind_events(steps);
    }

    fn pause(&mut self, moment: Moment, steps: &mut VecDeque<Step>) {
        for laid in &mut self.laid {
            if let Fault::Delay(when, period) = laid.fault
                && when == moment
            {
                laid.hit(steps);
                steps.push_back(Step::Pause(period));
            }
        }
    }

    /// Adds the [`Step`]s of each fault that takes effect after exactly the number of events received so far.
    ///
    /// For example, `cut after 3 events` takes effect after the third event.
    fn behind_events(&mut self, steps: &mut VecDeque<Step>) {
        let mut due = Vec::new();
        for laid in &mut self.laid {
            if let Fault::Send(_, after) | Fault::End(_, After::Events(after)) = &laid.fault
                && *after == self.events
            {
                laid.hit(steps);
                due.push(laid.fault.clone());
            }
        }
        for fault in due {
            match fault {
                Fault::Send(text, _) => self.send(Bytes::from(text.to_string()), steps),
                Fault::End(ending, _) => steps.push_back(Step::End(ending)),
                _ => {}
            }
        }
    }

    /// Adds steps that send `bytes`.
    ///
    /// If a fault ends a chunk or the body at a position in `bytes`, adds the step of the fault at this
    /// position.
    fn send(&mut self, mut bytes: Bytes, steps: &mut VecDeque<Step>) {
        while !bytes.is_empty() {
            let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
            let chunk = bytes.split_to(room.min(bytes.len()));
            self.bytes += chunk.len() as u64;
            steps.push_back(Step::Bytes(chunk));
            self.behind_bytes(steps);
        }
    }

    /// Returns the number of bytes until a fault ends a chunk or the body, or `u64::MAX` if none does.
    fn room(&mut self) -> u64 {
        let at = self.bytes;
        let mut room = u64::MAX;
        for laid in &mut self.laid {
            let next = match &laid.fault {
                Fault::End(_, After::Bytes(end)) => *end,
                Fault::Split(Split::Every(bytes)) => (at / bytes.get() + 1) * bytes.get(),
                Fault::Split(Split::At(borders)) => {
                    borders.iter().copied().find(|b| *b > at).unwrap_or(0)
                }
                Fault::Split(Split::Randomly) => {
                    if self.random_border <= at {
                        self.random_border = at + laid.rng.u64(1..=RANDOM_CHUNK_MAX);
                    }
                    self.random_border
                }
                _ => continue,
            };
            if next > at {
                room = room.min(next - at);
            }
        }
        room
    }

    /// Adds the [`Step`]s of each fault that takes effect after exactly the number of bytes sent so far.
    ///
    /// For example, `cut after 100 bytes` takes effect after the first 100 bytes.
    fn behind_bytes(&mut self, steps: &mut VecDeque<Step>) {
        let at = self.bytes;
        for laid in &mut self.laid {
            let step = match &laid.fault {
                Fault::End(ending, After::Bytes(end)) if *end == at => Step::End(*ending),
                Fault::Split(Split::Every(bytes)) if at > 0 && at.is_multiple_of(bytes.get()) => {
                    Step::Flush
                }
                Fault::Split(Split::At(borders)) if borders.contains(&at) => Step::Flush,
                Fault::Split(Split::Randomly) if at > 0 && at == self.random_border => Step::Flush,
                _ => continue,
            };
            laid.hit(steps);
            steps.push_back(step);
        }
    }
}

/// Returns whether `which` selects the event with this number and these bytes.
fn picks(
    which: Which,
    number: u64,
    framing: Framing,
    event: &[u8],
    rng: &mut fastrand::Rng,
) -> bool {
    match which {
        Which::All => true,
        Which::Nth(nth) => number == nth.get(),
        Which::Every(nth) => number.is_multiple_of(nth.get()),
        Which::Share(share) => share.draw(rng),
        Which::Bookmarks => framing.is_bookmark(event),
        Which::EndBookmark => framing.is_end_bookmark(event),
    }
}
