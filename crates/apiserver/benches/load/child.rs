//! Starts the child process of the benchmark and measures its CPU time and memory.
//!
//! The child runs either the server under load or, for comparison, a program that only writes to sockets. The
//! main functions of both programs are in this module.
//!
//! The CPU time and the memory are read from `/proc`.
//!
//! Guarantees: a child that runs the server ends when the benchmark ends or is killed, because the child's
//! standard input is then closed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kube_informer_apiserver::Server;

use tokio::time::Instant;

use crate::client::{micros, pause, pod};

/// First command-line argument of the child process that runs the server.
pub(crate) const ROLE: &str = "be-the-server";

/// First command-line argument of the child process that only writes to sockets.
pub(crate) const BARE: &str = "be-a-loop";

/// Status line and headers of a watch response.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Unit of the CPU times in `/proc/PID/stat`: 1/100 s on Linux.
const TICK: Duration = Duration::from_millis(10);

/// CPU time that a process has used in user mode and in kernel mode.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

/// A running child process, which listens on `address`. Dropping the value kills the process.
pub(crate) struct Subject {
    child: Child,
    /// Standard input of the child. The child ends after this pipe is closed.
    _input: ChildStdin,
    pub(crate) address: SocketAddr,
    _output: BufReader<ChildStdout>,
}

/// Main function of the child that runs the server, until standard input is closed.
///
/// The arguments are the number of stored pods, and whether the server records the owners of fields.
pub(crate) fn play(arguments: &[String]) -> anyhow::Result<()> {
    let objects: u32 = arguments.first().context("how many objects")?.parse()?;
    let managed_fields: bool = arguments.get(1).context("managed fields or not")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = Server::builder().managed_fields(managed_fields).build();
        for number in 0..objects {
            server.create(serde_json::from_str(&pod(number, 0))?)?;
        }
        let listening = server.listen(([127, 0, 0, 1], 0).into()).await?;
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", listening.local_addr())?;
        output.flush()?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        listening.shutdown().await;
        anyhow::Ok(())
    })
}

/// Main function of the child that only writes events to sockets at a fixed rate.
///
/// The arguments are the number of connections, the events per connection, and the events per second on each
/// connection.
pub(crate) fn write_only(arguments: &[String]) -> anyhow::Result<()> {
    let [watchers, events, rate] = arguments else {
        bail!("watchers, events, rate");
    };
    let (watchers, events, rate): (u32, u32, u32) =
        (watchers.parse()?, events.parse()?, rate.parse()?);
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?);
    let mut sockets = Vec::new();
    for _ in 0..watchers {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        // One read receives the whole request.
        let _ = socket.read(&mut [0; 1024])?;
        socket.write_all(HEAD)?;
        sockets.push(socket);
    }
    let began = Instant::now();
    for number in 0..events {
        let due = Duration::from_secs(1) * number / rate;
        pause(due.saturating_sub(began.elapsed()));
        let body = format!(
            r#"{{"type":"MODIFIED","object":{}}}"#,
            pod(number, micros(began.elapsed()))
        );
        let chunk = format!("{:x}\r\n{body}\n\r\n", body.len() + 1);
        for socket in &mut sockets {
            socket.write_all(chunk.as_bytes())?;
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

impl Subject {
    /// Starts a child process that runs a server with this number of pods.
    pub(crate) fn start(objects: u32, managed_fields: bool) -> anyhow::Result<Subject> {
        Subject::spawn(&[ROLE, &objects.to_string(), &managed_fields.to_string()])
    }

    /// Starts a child process that writes `events` events to each of `watchers` connections.
    ///
    /// The child writes `rate` events per second to each connection.
    pub(crate) fn start_bare(watchers: u32, events: u32, rate: u32) -> anyhow::Result<Subject> {
        let numbers = [watchers, events, rate].map(|number| number.to_string());
        Subject::spawn(&[BARE, &numbers[0], &numbers[1], &numbers[2]])
    }

    fn spawn(arguments: &[&str]) -> anyhow::Result<Subject> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("standard input is a pipe")?;
        let output = child.stdout.take().context("standard output is a pipe")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().context("the server did not start")?;
        Ok(Subject {
            child,
            _input: input,
            address,
            _output: output,
        })
    }

    /// Returns the CPU time that all threads of the child have used.
    pub(crate) fn cpu(&self) -> anyhow::Result<Cpu> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name before the last parenthesis may contain blanks. Of the fields after it, the 12th and 13th
        // are utime and stime.
        let (_, fields) = stat.rsplit_once(')').context("stat has a name")?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u32>);
        let mut next = || {
            ticks
                .next()
                .context("stat has times")?
                .map_err(anyhow::Error::from)
        };
        Ok(Cpu {
            user: TICK * next()?,
            system: TICK * next()?,
        })
    }

    /// Returns the peak resident memory of the child in KiB.
    pub(crate) fn peak_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.context("status has VmHWM")?.trim().parse()?)
    }
}

impl Cpu {
    pub(crate) fn all(self) -> Duration {
        self.user + self.system
    }

    pub(crate) fn since(self, earlier: Cpu) -> Cpu {
        Cpu {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // The process also ends with its input, unless it hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
