//! `subject-system`: the `subject` program with the allocator of the system's C library instead of jemalloc.

fn main() -> anyhow::Result<()> {
    subject::run()
}
