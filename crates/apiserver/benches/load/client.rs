//! Provides the benchmark's clients, which use little CPU time: watchers and a writer.
//!
//! The writer replaces pods at a fixed rate. A watcher measures the lag of each event, which is the time from
//! before the write request until the watcher has read the event.
//!
//! Guarantees: a watcher returns an error if its watch ends early or delivers more events than expected.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

/// Length of a pod's JSON in a write request, in bytes.
const SIZE: usize = 880;

/// The JSON text before the write time in a pod.
const STAMP: &str = "\"bench/ts\":\"";

/// Number of digits of a write time in microseconds.
const DIGITS: usize = 12;

/// Size of the buffer for received bytes, in bytes.
const READ: usize = 64 * 1024;

/// The measured lags of all events that the watchers of a run have received.
pub(crate) struct Seen {
    pub(crate) began: Instant,
    /// Time in microseconds from each write until a watcher has read its event.
    pub(crate) lags: RefCell<Vec<u32>>,
}

fn name(number: u32) -> String {
    format!("pod-{number:07}")
}

/// Returns the JSON of pod `number` for a write request.
///
/// `stamp` is the time of the write, in microseconds since the start of the run.
pub(crate) fn pod(number: u32, stamp: u64) -> String {
    let start = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"default","labels":{{"app":"bench"}},"annotations":{{"bench/ts":"{stamp:0DIGITS$}","filler":""#,
        name(number),
    );
    let end = format!(
        r#""}}}},"spec":{{"nodeName":"node-{number:07}","containers":[{{"name":"main","image":"registry.example/main:1"}}]}},"status":{{"phase":"Running"}}}}"#
    );
    let filler = "x".repeat(SIZE.saturating_sub(start.len() + end.len()));
    format!("{start}{filler}{end}")
}

impl Seen {
    pub(crate) fn new() -> Rc<Seen> {
        Rc::new(Seen {
            began: Instant::now(),
            lags: RefCell::default(),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "no task of a runtime is blocked")]
pub(crate) fn pause(period: Duration) {
    std::thread::sleep(period);
}

pub(crate) fn micros(since: Duration) -> u64 {
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// An open watch of pods.
pub(crate) struct Watcher(tokio::net::TcpStream);

impl Watcher {
    /// Opens a watch without initial events, and waits for the response headers.
    ///
    /// `selector` is appended to the query of the request, such as `&fieldSelector=…`.
    pub(crate) async fn open(address: SocketAddr, selector: &str) -> anyhow::Result<Watcher> {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let path = format!(
            "/api/v1/pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan{selector}"
        );
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // One byte at a time, because the bytes after the head belong to the body.
            head.push(stream.read_u8().await.context("a watch ends in its head")?);
        }
        if !head.starts_with(b"HTTP/1.1 200 ") {
            bail!("a watch is refused: {}", String::from_utf8_lossy(&head));
        }
        Ok(Watcher(stream))
    }

    /// Reads `events` events, and adds the lag of each event to `seen`.
    ///
    /// # Errors
    /// Returns an error if the watch delivers fewer than `events` events, or if the last read contains
    /// further events. [`Watcher::is_silent`] detects events that arrive later.
    pub(crate) async fn follow(mut self, seen: Rc<Seen>, events: u64) -> anyhow::Result<Watcher> {
        let finder = memmem::Finder::new(STAMP);
        let (mut buffer, mut kept, mut told) = (vec![0; READ], 0, 0);
        while told < events {
            let read = self.0.read(&mut buffer[kept..]).await?;
            if read == 0 {
                bail!("a watch has ended after {told} of {events} events");
            }
            let now = micros(seen.began.elapsed());
            let end = kept + read;
            let mut done = 0;
            for at in finder.find_iter(&buffer[..end]) {
                let digits = at + STAMP.len()..at + STAMP.len() + DIGITS;
                if digits.end > end {
                    break;
                }
                let stamp = std::str::from_utf8(&buffer[digits.clone()])?.parse::<u64>()?;
                let lag = u32::try_from(now.saturating_sub(stamp)).unwrap_or(u32::MAX);
                seen.lags.borrow_mut().push(lag);
                told += 1;
                done = digits.end;
            }
            // The end of the read may be inside a stamp.
            let tail = done.max(end.saturating_sub(STAMP.len() + DIGITS));
            buffer.copy_within(tail..end, 0);
            kept = end - tail;
        }
        if told > events {
            bail!("a watch has {told} events instead of {events}");
        }
        Ok(self)
    }

    /// Returns whether the watch is still open and has no unread bytes.
    pub(crate) fn is_silent(&self) -> bool {
        let rest = self.0.try_read(&mut [0; 1]);
        rest.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// A client that replaces pods at a fixed rate over one connection, with blocking I/O.
pub(crate) struct Writer {
    pub(crate) address: SocketAddr,
    pub(crate) began: Instant,
    pub(crate) objects: u32,
    /// Number of writes per second.
    pub(crate) rate: u32,
}

impl Writer {
    /// Replaces the pods in a cycle until the server has acknowledged `writes` writes.
    pub(crate) fn write(&self, writes: u32) -> anyhow::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        let mut answer = vec![0; READ];
        let began = Instant::now();
        for number in 0..writes {
            let due = Duration::from_secs(1) * number / self.rate;
            pause(due.saturating_sub(began.elapsed()));
            let body = pod(number % self.objects, micros(self.began.elapsed()));
            let request = format!(
                "PUT /api/v1/namespaces/default/pods/{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                name(number % self.objects),
                body.len(),
            );
            stream.write_all(request.as_bytes())?;
            let read = read_answer(&mut stream, &mut answer)?;
            if !answer.starts_with(b"HTTP/1.1 200 ") {
                let answer = String::from_utf8_lossy(&answer[..read]);
                bail!("a write is refused: {answer}");
            }
        }
        Ok(())
    }
}

/// Reads one response into `buffer`, and returns its length in bytes, including the headers.
fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<usize> {
    let mut read = 0;
    loop {
        let more = stream.read(&mut buffer[read..])?;
        if more == 0 {
            bail!("a write is not answered");
        }
        read += more;
        let Some(head) = memmem::find(&buffer[..read], b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buffer[..head])?.to_ascii_lowercase();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("an answer has no length")?;
        if read >= head + 4 + length.parse::<usize>()? {
            return Ok(read);
        }
    }
}
